/** Error codes of imported baselines; errors.ts puts them into the one table of codes. */

import type { CodeInfo } from './code-info.ts';

export const BASELINE_CODES = {
  'run.baseline-missing': {
    meaning: 'The baseline is `tracked`, and nobody has told what this target holds. Nothing was sent.',
    remedy:
      'List every member that the target holds in a file, and import it with `retl baseline import`: docs/baselines.md.',
    recourse: 'fix',
  },
  'run.baseline-not-tracked': {
    meaning: 'Only a mirror whose baseline is `tracked` has a baseline to import; nothing was imported.',
    remedy: 'Write `baseline: tracked` in the mirror’s file where its target holds members already.',
    recourse: 'fix',
  },
  'run.baseline-known': {
    meaning: 'What the target holds is known to the journal already; nothing was imported.',
    remedy: 'None needed: `retl plan` shows what a run would do. A new target has a baseline of its own.',
    recourse: 'fix',
  },
  'run.baseline-open-run': {
    meaning: 'The mirror has an open run; nothing was imported.',
    remedy: 'Let it end, or `retl abort` it; then import again.',
    recourse: 'fix',
  },
  'data.baseline-file': {
    meaning: 'The file of a baseline cannot be taken for the list of all members; nothing was imported.',
    remedy:
      'See the rule in the details, and the lines of the file that it names; `docs/baselines.md` says what a file holds.',
    recourse: 'fix',
  },
} as const satisfies Record<string, CodeInfo>;
