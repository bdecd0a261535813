/** What the worker writes of a failure: a line where it was foreseen, the frames where it is a bug. */

import { ApplicationFailure } from '@temporalio/common';
import { expect, test } from 'vitest';
import { lineOf } from '../../src/worker-log.ts';

const failed = (type: string, code: string) =>
  lineOf({
    level: 'WARN',
    timestampNanos: 0n,
    message: 'Workflow failed',
    meta: {
      workflowId: 'mirror/vip',
      error: ApplicationFailure.create({ type, message: 'nobody answered', details: [{ code }] }),
    },
  });

test.each(['guard-held', 'rejected', 'invalid', 'refused', 'unavailable'])(
  '%s is one line without a stack',
  (type) => {
    expect(failed(type, 'run.x')).toBe(
      `1970-01-01T00:00:00.000Z [WARN] Workflow failed (mirror/vip): ${type}: nobody answered`,
    );
  },
);

test.each([
  ['defect', 'defect'],
  ['invalid', 'defect'],
])('a bug (%s, %s) keeps its frames', (type, code) => {
  expect(failed(type, code)).toMatch(/\n +at /);
});

test('what has no failure is written as it is', () => {
  const entry = { level: 'WARN' as const, timestampNanos: 0n, message: 'slow' };
  expect(lineOf(entry)).toBe('1970-01-01T00:00:00.000Z [WARN] slow');
  expect(lineOf({ ...entry, meta: { rows: 3 } })).toBe('1970-01-01T00:00:00.000Z [WARN] slow { rows: 3 }');
});
