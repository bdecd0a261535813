/** The part of the table of error codes (errors.ts) that is about indexes, their checkpoints and artifacts. */

import type { CodeInfo } from './code-info.ts';

export const INDEX_CODES = {
  'log.broken': {
    meaning: 'The log is not what was written; nothing of it was compacted.',
    remedy: '`retl log verify` says where, and docs/log.md what to do.',
    recourse: 'fix',
  },
  'index.schema-changed': {
    meaning: 'The index was built at another schema version than this release’s.',
    remedy:
      'None needed: a new build replays the whole log and takes the old one’s place when it has caught up.',
    recourse: 'fix',
  },
  'index.newer-release': {
    meaning: 'A newer release has built the index, at a schema version that this one does not know.',
    remedy: 'Run that release’s worker; `retl index rebuild` goes back to this one’s.',
    recourse: 'fix',
  },
  'index.definition-changed': {
    meaning: 'The index’s definition has changed, but its name and schema version have not.',
    remedy: 'Give the index another name, and `retl index forget` the old one; a rebuild is refused as well.',
    recourse: 'fix',
  },
  'index.other-log': {
    meaning: 'The index was built from the log of another journal.',
    remedy: 'Point the index at its own journal, or give this journal an index of its own.',
    recourse: 'fix',
  },
  'index.ahead-of-log': {
    meaning: 'The index has processed more than the log holds: the log is not the one it was built from.',
    remedy: 'Was an older backup of the journal restored? Restore a newer one, or build the index anew.',
    recourse: 'fix',
  },
  'index.log-diverged': {
    meaning:
      'At the index’s position the log has another entry than the index has processed, or lost or altered values (see `rule`).',
    remedy: 'Build the index anew from this log, or restore the journal that it was built from.',
    recourse: 'fix',
  },
  'index.snapshot-mismatch': {
    meaning: 'The log snapshot that the index began with is gone, or has another boundary or digest.',
    remedy: 'Look at the journal’s log snapshots with `rule` of the details, then build the index anew.',
    recourse: 'fix',
  },
  'index.past-compaction': {
    meaning: 'The log has been compacted past the position from which the index would go on.',
    remedy: 'Build the index anew: it begins with the log snapshot.',
    recourse: 'fix',
  },
  'index.checkpoint-version': {
    meaning: 'The checkpoint is in a version of the format that this release does not read.',
    remedy: 'Run the release that wrote it, or a newer one.',
    recourse: 'fix',
  },
  'index.checkpoint-damaged': {
    meaning:
      'The checkpoint’s bytes are none of the format, or are those of another checkpoint than recorded.',
    remedy: 'Use an earlier checkpoint of the same build, or build the index anew.',
    recourse: 'fix',
  },
  'index.build-raced': {
    meaning: 'Another builder works on the same build of the index, and was faster.',
    remedy: 'Leave the build to it; one workflow per index is enough.',
    recourse: 'fix',
  },
  'index.registry-mismatch': {
    meaning:
      'The newest checkpoint that the journal has of the build is not the index’s: one of the two was restored from a backup.',
    remedy: '`retl index rebuild` builds it anew from this log; readers have it as it is until then.',
    recourse: 'fix',
  },
  'index.frozen': {
    meaning: 'The index was rolled back, and stays at that position.',
    remedy: '`retl index rebuild` has it follow the log again.',
    recourse: 'fix',
  },
  'index.behind': {
    meaning: 'The index is further behind the log than an answer may be.',
    remedy: '`retl index run` has it follow the log; `--max-lag` says how far behind it may be.',
    recourse: 'fix',
  },
  'index.not-built': {
    meaning: 'The index has no build that readers see yet.',
    remedy: '`retl index run` builds it.',
    recourse: 'fix',
  },
  'index.unknown': {
    meaning: 'No index of this name is configured, or it is `retired`.',
    remedy: 'Check the name; `indexes` of retl.yaml lists them.',
    recourse: 'fix',
  },
  'index.unknown-checkpoint': {
    meaning: 'The journal keeps no such checkpoint of this index.',
    remedy: '`retl index checkpoints` lists those that are kept of an index.',
    recourse: 'fix',
  },
  'index.unavailable': {
    meaning: 'The system that the index lives in cannot be reached, or is too busy.',
    remedy: 'None needed where it comes back by itself: the index goes on from its checkpoint.',
    recourse: 'retry',
  },
  'index.misconfigured': {
    meaning: 'The system that the index lives in refuses the settings, the rights, or what stands there.',
    remedy:
      'The details say what: a rule, and docs/indexes.md what to do about it (`rights`: grant what `retl check` misses; `table-gone`: `retl index rebuild`), or an SQLSTATE or the engine’s code alone.',
    recourse: 'fix',
  },
  'artifact.missing': {
    meaning: 'The store of artifacts has none of this reference.',
    remedy:
      'Restore it from a backup, name the store it was put into under `artifacts.former` of retl.yaml, or use another checkpoint.',
    recourse: 'fix',
  },
  'artifact.corrupt': {
    meaning: 'What the store of artifacts holds under a reference is not what the reference says.',
    remedy: 'Remove it and restore it from a backup, or use another checkpoint; the details name it.',
    recourse: 'fix',
  },
  'artifact.unavailable': {
    meaning: 'The store of artifacts cannot be reached, or is too busy.',
    remedy: 'None needed where it comes back by itself: the work is tried again.',
    recourse: 'retry',
  },
  'artifact.misconfigured': {
    meaning:
      'The store of artifacts refuses the settings, the credentials or the rights that it is used with.',
    remedy: 'Mend what the code in the details names, then run again.',
    recourse: 'fix',
  },
} as const satisfies Record<string, CodeInfo>;
