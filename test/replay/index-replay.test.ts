/** The workflow `index` is held against recorded histories too: it sleeps longer than any run (design.md section 8). */

import type { WorkflowBundle } from '@temporalio/worker';
import { beforeAll, expect, test } from 'vitest';
import { bundles, historyText, replayOne } from './replay-one.ts';

/** `followed`: builds, catches up, sleeps, is woken and stopped. `continued`: paused, and ends by continue-as-new.
 * `handed-over`: a schedule's start, which has begun the index's own. `already-followed`: another, which has woken it. */
const FOLLOWING = ['followed', 'continued'] as const;
const NAMES = [...FOLLOWING, 'handed-over', 'already-followed'] as const;

let current: WorkflowBundle;
let altered: WorkflowBundle;
beforeAll(async () => {
  [current, altered] = await bundles();
});

const textOf = (name: string) => historyText(`index-histories/${name}`);
const replay = (bundle: WorkflowBundle, name: string) => replayOne(bundle, `index-histories/${name}`);

test.each(NAMES)('the workflow of today replays `%s`', async (name) => {
  expect((await replay(current, name)).error).toBeUndefined();
});

test.each(NAMES)('a workflow that has changed its ways is found out by `%s`', async (name) => {
  expect((await replay(altered, name)).error?.name).toBe('DeterminismViolationError');
});

test('leaks: they hold no value of a row', async () => {
  for (const name of FOLLOWING) {
    const text = await textOf(name);
    const data = [...text.matchAll(/"data": ?"(?<base64>[^"]*)"/g)];
    const decoded = data.map((match) => Buffer.from(match.groups?.base64 ?? '', 'base64').toString());
    // What members of the scene are called, and how an identity begins.
    expect(`${text}${decoded.join('')}`).not.toMatch(/"k\d+\\?"|\{\\?"id\\?":/);
    expect(`${text}${decoded.join('')}`).toContain('caught-up');
  }
});
