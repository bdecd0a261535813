/**
 * Every error code of the project, with its meaning and remedy: the README's list is made from this table.
 *
 * A `RetlError` carries a code, and details that are names, counts, places and hashes. It never carries a row's value,
 * an identity, a secret or a vendor's own words.
 */

import { BASELINE_CODES } from './baseline-codes.ts';
import type { CodeInfo, Recourse } from './code-info.ts';
import { INDEX_CODES } from './index-codes.ts';
import { JOURNAL_CODES } from './journal-codes.ts';
import { METRICS_CODES } from './metrics-codes.ts';
import { REMOVAL_CODES } from './removal-codes.ts';

export type { Recourse } from './code-info.ts';

export const ERROR_CODES = {
  // configuration
  'config.invalid': {
    meaning: 'The configuration has errors; all of them are listed with file and path.',
    remedy: 'Mend each listed place; `retl check` says what is wrong there, and what would be valid.',
    recourse: 'fix',
  },
  'config.secret': {
    meaning: 'A secret reference points to an environment variable or file that is not there.',
    remedy:
      'Set the variable or create the file, here and where the worker runs. `retl dev` sets RETL_JOURNAL_URL while it runs.',
    recourse: 'fix',
  },
  'config.revision': {
    meaning: 'A configuration revision in the journal is not in a form that this release reads.',
    remedy: 'Run the release that wrote it, or a newer one.',
    recourse: 'fix',
  },
  'config.mapping': {
    meaning: 'The TypeScript module of a mapping cannot be loaded, or is not what was configured.',
    remedy:
      'See the rule in the details; the module must export a `MirrorProjection` (`rowType` and `project`).',
    recourse: 'fix',
  },
  'config.unknown-mirror': {
    meaning:
      'No mirror of this name is configured there: for a command on this machine, for a run where the worker runs.',
    remedy: 'Check the name and the folder; `retl check` reads the mirrors that are there.',
    recourse: 'fix',
  },
  'config.target-shared': {
    meaning:
      'Two mirrors of this project have one target, and neither owns it yet: the first that runs gets it, and the other is refused.',
    remedy: 'Give each mirror a target of its own, or remove the file of the one that is not wanted.',
    recourse: 'fix',
  },
  'config.schedule': {
    meaning: 'Temporal refuses the times of a schedule; the schedule is as it was before.',
    remedy: 'Correct `schedule` in the mirror’s file: the server may not know its time zone.',
    recourse: 'fix',
  },
  // Temporal
  'temporal.connect': {
    meaning: 'Temporal cannot be reached, or refuses the connection.',
    remedy: 'Check `temporal` in retl.yaml and TEMPORAL_*; `retl dev` starts a local server.',
    recourse: 'retry',
  },
  'temporal.queue-shared': {
    meaning: 'A worker of another journal polls this task queue: each would take up the other’s runs.',
    remedy:
      'Give this project a `temporal.task_queue`, or a namespace, of its own; if that worker was stopped for good, start this one in two minutes.',
    recourse: 'fix',
  },
  ...METRICS_CODES,
  // source
  'source.connect': {
    meaning: 'The source database cannot be reached or refuses the connection.',
    remedy: 'Check host, port, credentials and network; the run retries.',
    recourse: 'retry',
  },
  'source.lost': {
    meaning: 'The source connection ended before the query was read whole; nothing was sent.',
    remedy: 'None needed: the next attempt reads the whole query again.',
    recourse: 'retry',
  },
  'source.auth': {
    meaning: 'The source refuses the user, the password or the database of the connection.',
    remedy: 'Correct the connection, or grant its user the right to connect.',
    recourse: 'fix',
  },
  'source.tls': {
    meaning: 'No trusted TLS connection to the source can be made.',
    remedy: 'Give the certificate authority in `tls.ca`, or set `tls.mode` to what the server offers.',
    recourse: 'fix',
  },
  'source.timeout': {
    meaning:
      'The source stopped the query: a time limit, a lock that was not to be had, or somebody cancelled it.',
    remedy:
      'The run retries; raise `statement_timeout_ms` or `lock_timeout_ms` where the query needs longer.',
    recourse: 'retry',
  },
  'source.query': {
    meaning: 'The source refuses the query.',
    remedy: 'Run the query by hand as the same user; the SQLSTATE is in the details.',
    recourse: 'fix',
  },
  'source.duplicate-column': {
    meaning: 'Two columns of the query have one name.',
    remedy: 'Give each column its own name with AS.',
    recourse: 'fix',
  },
  // data
  'data.invalid-value': {
    meaning:
      'A value has no exact representation in a request (NaN, infinity, NUL, lone surrogate, inexact number).',
    remedy: 'Cast or filter the column in the query; the details name rule, column and key hash.',
    recourse: 'fix',
  },
  'data.invalid-row': {
    meaning: 'A row does not pass the row schema or the mapping.',
    remedy: 'Mend the row at the source, or exclude it on purpose with `when`.',
    recourse: 'fix',
  },
  'data.null-key': {
    meaning: 'A key column or an identity field is NULL or empty where it must not be.',
    remedy: 'Filter such rows in the query, or choose another key.',
    recourse: 'fix',
  },
  'data.duplicate-key': {
    meaning: 'Two rows of the snapshot have the same source key.',
    remedy: 'Make the key unique: group in the query or add a key column.',
    recourse: 'fix',
  },
  'data.key-too-long': {
    meaning: 'A source key is longer than 2,000 bytes.',
    remedy: 'Use a shorter key, for example a hash of the long column.',
    recourse: 'fix',
  },
  'data.key-type-changed': {
    meaning: 'A key column has another type than in the last promoted generation.',
    remedy: 'Cast the column back in the query, or start the mirror on a new target.',
    recourse: 'fix',
  },
  'data.conflicting-payloads': {
    meaning: 'Two rows give different payloads for one identity.',
    remedy: 'Make the query return one row per identity, or widen the identity.',
    recourse: 'fix',
  },
  'data.operation-too-large': {
    meaning: 'One upsert or removal alone is larger than the byte limit of a request.',
    remedy: 'Raise `batch.bytes` within the provider’s limit, or send fewer fields.',
    recourse: 'fix',
  },
  ...REMOVAL_CODES,
  'data.unknown-column': {
    meaning: 'The key or the mapping names a column that the query does not return.',
    remedy: 'Correct the name; the details list the columns there are.',
    recourse: 'fix',
  },
  // journal
  ...JOURNAL_CODES,
  // runs
  'run.busy': {
    meaning:
      'Another workflow execution holds an open run of this mirror, or cannot be asked whether it does.',
    remedy: 'Wait for it or cancel it; the details name it.',
    recourse: 'fix',
  },
  'run.target-owned': {
    meaning: 'The destination’s target belongs to another mirror.',
    remedy:
      'Give each mirror a target of its own; after a renaming, give the file its old name back. A mirror that has sent nothing owns its target only while a run of it is open.',
    recourse: 'fix',
  },
  'run.target-moved': {
    meaning:
      'An open run belongs to the target that it was opened with, and its connection’s references lead to another one now. Nothing was sent.',
    remedy:
      'Give the references back what they gave, and let the run complete or abort it; or let it pass `resume_max_age`: then it is closed, and the new target begins with its own baseline.',
    recourse: 'fix',
  },
  'run.identity-moved': {
    meaning:
      'The target holds members accepted under other identity fields or columns: removals would fail, or hit others. Nothing was sent.',
    remedy:
      'Give fields and columns their old names back; else let the mirror as it was remove everybody first (an empty snapshot, approved), or use another table.',
    recourse: 'fix',
  },
  'run.strategy-changed': {
    meaning: 'A mirror keeps its strategy for life.',
    remedy: 'Restore the strategy, or give the mirror a new name and target.',
    recourse: 'fix',
  },
  'run.guard-held': {
    meaning:
      'The run would remove more members than its safety limits allow. It is parked: nobody was removed, and it waits for an answer.',
    remedy:
      'Look at what it would remove; then approve it where that is meant, else reject it. `retl status` says how it stands.',
    recourse: 'fix',
  },
  'run.guard-rejected': {
    meaning: 'Somebody rejected the removals that the guard asked about. Nobody was removed.',
    remedy: 'Mend the query or the source; the next run reads it anew.',
    recourse: 'fix',
  },
  'run.guard-expired': {
    meaning: 'Nobody answered what the guard asked before the deadline. Nobody was removed.',
    remedy: 'Run again, and approve or reject within `safety.approval_deadline`.',
    recourse: 'fix',
  },
  'run.plan-stale': {
    meaning:
      'What the run would do is not what the saved plan showed: the source or the membership has moved past it. Nothing was sent.',
    remedy: 'Plan again, look at it, and run the new plan.',
    recourse: 'fix',
  },
  'run.rejected': {
    meaning: 'The destination refused members or a whole request for good; the run stopped there.',
    remedy: 'Mend the rows or the mapping; the next run reads the source anew and sends what is missing.',
    recourse: 'fix',
  },
  'run.blocked': {
    meaning: 'The outcome of a request is unknown and cannot be verified; it is never sent again blindly.',
    remedy: 'Look at the destination, then tell the run with `retl resolve`; `retl status` names the batch.',
    recourse: 'fix',
  },
  // destination
  'destination.misconfigured': {
    meaning: 'The destination refuses the connection’s rights or settings; nothing was applied.',
    remedy: 'Mend credentials, rights or settings, then run again: the sealed generation is resumed.',
    recourse: 'fix',
  },
  'destination.unavailable': {
    meaning: 'The destination cannot be reached.',
    remedy: 'None needed where it comes back by itself: the run retries, then can be resumed.',
    recourse: 'retry',
  },
  // baselines
  ...BASELINE_CODES,
  // indexes and artifacts
  ...INDEX_CODES,
} as const satisfies Record<string, CodeInfo>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** A process or worker of another release may have codes that this one does not know. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code);
}

export type ErrorDetails = { readonly [key: string]: string | number | boolean | readonly string[] };

/** An error that a user can act on. */
export class RetlError extends Error {
  override readonly name = 'RetlError';
  constructor(
    readonly code: ErrorCode,
    readonly details: ErrorDetails = {},
  ) {
    super(`${code}: ${ERROR_CODES[code].meaning} ${ERROR_CODES[code].remedy}${inWords(details)}`);
  }

  get recourse(): Recourse {
    return ERROR_CODES[this.code].recourse;
  }
}

/** `name=value` for each detail. */
export function detailsInWords(details: ErrorDetails): readonly string[] {
  return Object.entries(details).map(([k, v]) => `${k}=${Array.isArray(v) ? v.join(', ') : String(v)}`);
}

function inWords(details: ErrorDetails): string {
  const parts = detailsInWords(details);
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`;
}
