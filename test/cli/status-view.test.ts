/** What `retl status` says of one mirror: advice only where a person is needed, deadlines as the journal has them. */

import { expect, test } from 'vitest';
import type { LiveState } from '../../src/cli/live-state.ts';
import { reasonOf, stateOf } from '../../src/cli/run-view.ts';
import { detailLines } from '../../src/cli/status-view.ts';
import { runId, sha256 } from '../../src/domain/ids.ts';
import type { Progress, Waiting } from '../../src/domain/messages.ts';
import { type BatchKey, batchId } from '../../src/domain/request.ts';
import type { ParkedRun } from '../../src/journal/approvals.ts';
import type { RunSummary } from '../../src/journal/inspect.ts';
import type { BatchView } from '../../src/journal/resolve.ts';
import { shaHex } from '../support/journal-run.ts';
import { COUNTS } from '../workflow/script.ts';

const KEY: BatchKey = { mirror: 'm', run: runId(7n), action: 'upsert', operations: [], ordinal: 1 };
const BATCH = batchId(KEY, shaHex);
const RUN: RunSummary = {
  runId: '7',
  mirror: 'vip',
  state: 'open',
  phase: 'additions',
  reason: null,
  holder: 'default/mirror/vip',
  released: null,
  openedAt: new Date(0),
  closedAt: null,
  parked: null,
  changedTarget: false,
  counts: COUNTS,
  unresolvedBatches: 1,
  unknownBatches: 1,
  doing: { state: 'blocked', code: 'http-500', batch: BATCH, since: new Date(0) },
};
const SUMMARY = {
  mirror: 'vip',
  strategy: 'snapshot-diff',
  held: 10,
  baseline: 'new-empty',
  exceptions: 0,
  formerTargets: { targets: 0, members: 0 },
  lastRun: RUN,
};
const UNKNOWN: BatchView = {
  batch: BATCH,
  mirror: 'vip',
  runId: '7',
  closing: null,
  action: 'upsert',
  state: 'unknown',
  members: 1,
  reason: 'http-500',
  resends: 0,
  stagedAt: null,
  polls: 0,
  nextPollAt: null,
  preparedAt: new Date(0),
  sentAt: null,
  sendDeadline: null,
  deadlineLeftMs: 0,
  underWayMs: 0,
};
const ASKED: ParkedRun = {
  run: runId(7n),
  mirror: 'vip',
  code: 'max-removals',
  removals: 8,
  held: 10,
  toAdd: 0,
  toChange: 0,
  shown: sha256(`sha256:${'ab'.repeat(32)}`),
  parkedAt: new Date(0),
  deadline: new Date(86_400_123),
  leftMs: 3_600_000,
  verdict: null,
};

function answers(waiting: Waiting | null): LiveState {
  const progress: Progress = {
    mirror: 'vip',
    runId: '7',
    phase: 'additions',
    counts: COUNTS,
    waiting,
    control: 'none',
    paused: false,
    parked: null,
  };
  return { kind: 'answers', progress };
}

function shown(live: LiveState, asks: ParkedRun | null = null, run = RUN): string {
  const style = (text: string) => text;
  const unresolved = [UNKNOWN];
  return detailLines({ summary: SUMMARY, run, asks, live, unresolved, style, now: 9_999 }).join('\n');
}

test('rule 3: what became of a batch is asked of a person where the run is blocked, not where it tries again by itself', () => {
  const retry = shown(answers({ kind: 'retry', code: 'http-500', untilMs: 5_000, batch: 'b' }));
  expect(retry).toContain('waiting to try again: http-500');
  expect(retry).toContain('unknown: 1 addition or change');
  expect(retry).not.toContain('retl resolve');
  expect(shown(answers(null))).not.toContain('retl resolve');
  expect(shown(answers({ kind: 'blocked', code: 'http-500', untilMs: null, batch: 'b' }))).toContain(
    'retl resolve vip',
  );
  expect(shown({ kind: 'unknown' })).toContain('retl resolve vip');
});

test.each([
  ['blocked', 'connection-reset', BATCH, `retl resolve vip ${BATCH} --accepted`],
  ['blocked', 'poll-deadline', BATCH, '`retl poll vip` asks once more'],
  ['blocked', 'http-401', null, '`retl resume vip` asks again'],
  ['blocked', 'nobody-looks', null, '`retl worker`'],
  ['parked', 'max-removals', null, '`retl approve vip`'],
] as const)(
  'without Temporal, a run that is %s (%s) says since when, and what it needs',
  (state, code, batch, needs) => {
    const run = { ...RUN, doing: { state, code, batch, since: new Date(0) } };
    const text = shown({ kind: 'unknown' }, null, run);
    expect(text).toContain(`last run  ${state} (additions)`);
    expect(text).toContain(`${state} since 1970-01-01T00:00:00.000Z, 10s ago`);
    expect(text.split('\n').filter((line) => line.startsWith('needs     '))).toEqual([
      expect.stringContaining(needs),
    ]);
  },
);

test.each(['running', 'waiting', 'pending', 'cancelled'] as const)(
  'a run that is %s needs nobody',
  (state) => {
    const run = { ...RUN, doing: { state, code: 'http-503', batch: null, since: null } };
    expect(shown({ kind: 'unknown' }, null, run)).not.toContain('needs ');
  },
);

test('the deadline of a parked run is the journal’s own, whenever it is looked at', () => {
  expect(shown({ kind: 'unknown' }, ASKED)).toContain(ASKED.deadline.toISOString());
});

test('a parked run whose time is over is not called resumable, and one that was closed so says why', () => {
  const cancelled = { ...RUN, released: 'cancelled', parked: 'max-removals' as const };
  expect(stateOf(cancelled, ASKED)).toBe('cancelled, resumable');
  expect(stateOf(cancelled, { ...ASKED, leftMs: 0 })).toBe('cancelled, not approved in time');
  expect(stateOf(cancelled, { ...ASKED, leftMs: 0, verdict: 'approved' })).toBe('cancelled, resumable');
  const closed = { ...RUN, state: 'guard-expired', unresolvedBatches: 0, unknownBatches: 0, doing: null };
  expect(reasonOf(closed)).toBe('nobody answered what the guard asked in time');
  expect(reasonOf({ ...closed, reason: 'max-removals' })).toBe('max-removals');
});
