/** Workflow code is held against histories of executions that may still be asleep (design.md section 8). */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowBundle } from '@temporalio/worker';
import { beforeAll, describe, expect, test } from 'vitest';
import { eventsOf, HISTORIES, type HistoryName, historyText } from './histories.ts';
import { bundles, replayOne } from './replay-one.ts';

let current: WorkflowBundle;
let altered: WorkflowBundle;
beforeAll(async () => {
  [current, altered] = await bundles();
});

const replay = (bundle: WorkflowBundle, name: HistoryName) => replayOne(bundle, `histories/${name}`);

test.each(HISTORIES)('the workflow of today replays `%s`', async (name) => {
  const { error } = await replay(current, name);
  expect(error).toBeUndefined();
});

test.each(HISTORIES)('a workflow that has changed its ways is found out by `%s`', async (name) => {
  const { error } = await replay(altered, name);
  expect(error?.name).toBe('DeterminismViolationError');
});

test('every recorded history is replayed', () => {
  const files = readdirSync(join(import.meta.dirname, 'histories'));
  expect(files.sort()).toEqual(HISTORIES.map((name) => `${name}.json`).sort());
});

describe('the histories are what they say', () => {
  const LAST: { readonly [N in HistoryName]: string } = {
    completed: 'WORKFLOW_EXECUTION_COMPLETED',
    continued: 'WORKFLOW_EXECUTION_CONTINUED_AS_NEW',
    continuation: 'WORKFLOW_EXECUTION_COMPLETED',
    cancelled: 'WORKFLOW_EXECUTION_COMPLETED',
    resumed: 'WORKFLOW_EXECUTION_COMPLETED',
    'cancelled-by-temporal': 'WORKFLOW_EXECUTION_CANCELED',
    discarded: 'WORKFLOW_EXECUTION_COMPLETED',
    paused: 'WORKFLOW_EXECUTION_COMPLETED',
    waiting: 'TIMER_STARTED',
    blocked: 'WORKFLOW_TASK_COMPLETED',
    aborted: 'WORKFLOW_EXECUTION_COMPLETED',
    pending: 'TIMER_STARTED',
    polled: 'WORKFLOW_EXECUTION_COMPLETED',
    'pending-aborted': 'WORKFLOW_EXECUTION_COMPLETED',
    parked: 'TIMER_STARTED',
    approved: 'WORKFLOW_EXECUTION_COMPLETED',
    'guard-rejected': 'WORKFLOW_EXECUTION_FAILED',
    rejected: 'WORKFLOW_EXECUTION_FAILED',
  };

  test.each(HISTORIES)('`%s` ends as it should', async (name) => {
    const types = (await eventsOf(name))
      .map((event) => event.eventType?.replace('EVENT_TYPE_', ''))
      .filter((type) => type !== 'UPSERT_WORKFLOW_SEARCH_ATTRIBUTES');
    expect(types.at(-1)).toBe(LAST[name]);
  });

  test.each(HISTORIES)('leaks: `%s` holds no value of a row', async (name) => {
    const text = await historyText(name);
    const payloads = [...text.matchAll(/"data":"(?<base64>[^"]*)"/g)].map((match) =>
      Buffer.from(match.groups?.base64 ?? '', 'base64').toString(),
    );
    expect(payloads.join('\n')).toContain('"mirror"');
    for (const shown of [text, ...payloads]) expect(shown).not.toMatch(/person-\d|secret/);
  });
});
