/** Error codes of baselines; errors.ts puts them into the one table of codes. */

import type { CodeInfo } from './code-info.ts';

export const BASELINE_CODES = {
  'destination.not-empty': {
    meaning: 'The baseline is `new-empty`, but the target holds something already.',
    remedy: 'Empty the target, or use a new one.',
    recourse: 'fix',
  },
  'destination.baseline-unknown': {
    meaning:
      'The adapter has no way to see that the target is empty, and nobody has vouched for it. Nothing was sent.',
    remedy:
      'Configure a read (`verify_empty`); or look yourself, and vouch for it: `retl baseline attest <mirror> --empty --because "…"`.',
    recourse: 'fix',
  },
  'destination.baseline-unsupported': {
    meaning: 'The baseline or strategy of the mirror is not one that this adapter can keep.',
    remedy:
      'Use `snapshot-diff` with `new-empty` or `tracked`; or `native-replace` with a destination that replaces its set whole: `s3`, or `postgres` with `swap`.',
    recourse: 'fix',
  },
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
    meaning: 'What the target holds is known to the journal already; nothing was recorded.',
    remedy: 'None needed: `retl plan` shows what a run would do. A new target has a baseline of its own.',
    recourse: 'fix',
  },
  'run.baseline-open-run': {
    meaning: 'The mirror has an open run; nothing was imported.',
    remedy: 'Let it end, or `retl abort` it; then import again.',
    recourse: 'fix',
  },
  'run.baseline-not-new-empty': {
    meaning:
      'Only of a mirror whose baseline is `new-empty` is it attested that its target is empty; nothing was recorded.',
    remedy:
      'Import what the target holds with `retl baseline import`; or write `baseline: new-empty` for a target that is new.',
    recourse: 'fix',
  },
  'run.baseline-seen': {
    meaning:
      'The destination shows by itself that its target is empty, and each first run looks; nothing was recorded.',
    remedy: 'None needed: `retl run` begins.',
    recourse: 'fix',
  },
  'run.baseline-moved': {
    meaning: 'The target, or what it holds, is not what was shown; nothing was recorded.',
    remedy: 'Do it again, and look at what is shown now. Nobody else may write to the target meanwhile.',
    recourse: 'fix',
  },
  'destination.cannot-list': {
    meaning: 'The destination has no way to list what it holds.',
    remedy:
      'Compare with an export of its own; what a target holds before its first run is imported with `retl baseline import`: docs/baselines.md.',
    recourse: 'fix',
  },
  'data.baseline-listing': {
    meaning: 'What the destination lists cannot be taken for the baseline; nothing was imported.',
    remedy:
      'See the rule in the details and in docs/baselines.md; `retl baseline import` takes a file in its place.',
    recourse: 'fix',
  },
  'data.baseline-file': {
    meaning: 'The file of a baseline cannot be taken for the list of all members; nothing was imported.',
    remedy:
      'See the rule in the details, and the lines of the file that it names; `docs/baselines.md` says what a file holds.',
    recourse: 'fix',
  },
} as const satisfies Record<string, CodeInfo>;
