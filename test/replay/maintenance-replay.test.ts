/** The workflow `maintenance` is held against recorded histories: one may be under way while a release is deployed (design.md section 8). */

import type { WorkflowBundle } from '@temporalio/worker';
import { beforeAll, expect, test } from 'vitest';
import { bundles, replayOne } from './replay-one.ts';

/** `done`: every task, one of which failed. `continued`: many windows, ends by continue-as-new. `cancelled`: between two windows. */
const NAMES = ['done', 'continued', 'cancelled'] as const;

let current: WorkflowBundle;
let altered: WorkflowBundle;
beforeAll(async () => {
  [current, altered] = await bundles();
});

const replay = (bundle: WorkflowBundle, name: string) => replayOne(bundle, `maintenance-histories/${name}`);

test.each(NAMES)('the workflow of today replays `%s`', async (name) => {
  expect((await replay(current, name)).error).toBeUndefined();
});

test.each(NAMES)('a workflow that has changed its ways is found out by `%s`', async (name) => {
  expect((await replay(altered, name)).error?.name).toBe('DeterminismViolationError');
});
