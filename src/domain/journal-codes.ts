/** The part of the table of error codes (errors.ts) that is about the journal. */

import type { CodeInfo } from './code-info.ts';

export const JOURNAL_CODES = {
  'journal.missing': {
    meaning:
      'The journal’s schema is not there, is older than this version, or the role has no rights on it.',
    remedy:
      'Run `retl migrate` as the owner; give the role what it is for: GRANT retl_runtime (workers), retl_inspector, retl_reader or retl_approver (people) TO <role>, and CONNECT on the database.',
    recourse: 'fix',
  },
  'journal.newer': {
    meaning: 'The journal’s schema is newer than this version understands.',
    remedy: 'Start the newer version; a schema is never taken back.',
    recourse: 'fix',
  },
  'journal.changed': {
    meaning: 'A migration that was applied differs from the file of this version.',
    remedy: 'Use the release that the journal was migrated with, or a later one.',
    recourse: 'fix',
  },
  'journal.migration': {
    meaning: 'A migration failed and was rolled back; nothing of it was applied.',
    remedy: 'Look at the SQLSTATE in the details and at the server’s log, then migrate again.',
    recourse: 'fix',
  },
  'journal.owner': {
    meaning: 'The role that migrates does not own the schema `retl`, or may not create it.',
    remedy:
      'Migrate as the owner; for a new one, as an administrator: CREATE SCHEMA retl AUTHORIZATION <owner>.',
    recourse: 'fix',
  },
  'journal.roles': {
    meaning: 'The journal’s owner may not create or grant one of the roles in the details.',
    remedy:
      'As an administrator: CREATE ROLE retl_runtime NOLOGIN, likewise retl_inspector, retl_reader and retl_approver; GRANT retl_runtime TO <the worker’s role>; then migrate again.',
    recourse: 'fix',
  },
  'journal.unavailable': {
    meaning: 'The journal’s database cannot be reached or is too busy.',
    remedy:
      'None needed where it comes back by itself: the run retries. Else check the journal’s URL: server, database, user and password.',
    recourse: 'retry',
  },
  'journal.damaged': {
    meaning:
      'Stored members are missing, or are not what their hashes were taken of; that request was not sent.',
    remedy: '`retl log verify` says what else was altered; docs/log.md says what to do.',
    recourse: 'fix',
  },
} as const satisfies Record<string, CodeInfo>;
