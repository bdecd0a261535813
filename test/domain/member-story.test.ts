import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Sha256, sha256FromHex } from '../../src/domain/ids.ts';
import {
  type Change,
  condense,
  type Did,
  type MemberBatch,
  type MemberOperation,
  type RunTrace,
  tellRuns,
  verdictOf,
} from '../../src/domain/member-story.ts';
import type { BatchState } from '../../src/domain/run.ts';

const AT = new Date(0);
const HASH: Sha256 = sha256FromHex('a'.repeat(64));

function batch(state: BatchState): MemberBatch {
  return {
    id: HASH,
    state,
    sending: 1,
    resends: 0,
    code: null,
    members: 1,
    accepted: null,
    rejected: null,
    preparedAt: AT,
    sentAt: null,
    settledAt: null,
    position: null,
    resolvedByOperator: false,
  };
}

function operation(change: Change, ...states: readonly BatchState[]): MemberOperation {
  return { change, sequence: '1', payloadHash: null, batches: states.map(batch), rejection: null };
}

function trace(part: Partial<RunTrace> = {}): RunTrace {
  return {
    runId: '1',
    state: 'completed',
    phase: 'complete',
    code: null,
    released: null,
    openedAt: AT,
    closedAt: AT,
    snapshot: 'present',
    desiredHash: HASH,
    plan: 'present',
    operation: null,
    ...part,
  };
}

const NOT_DESIRED = { desiredHash: null } as const;
const GONE = { snapshot: 'gone', desiredHash: null } as const;
const OPEN = { state: 'open', phase: 'additions' } as const;

describe('one run', () => {
  test.each<[string, Partial<RunTrace>, boolean, Did, boolean | null]>([
    ['held as desired', {}, true, 'unchanged', true],
    ['desired before the plan', { ...OPEN, plan: 'none' }, true, 'not-planned', true],
    ['desired, planned nowhere', { state: 'aborted', plan: 'gone' }, false, 'not-planned', true],
    ['neither desired nor held', NOT_DESIRED, false, 'left-out', false],
    ['held, not desired, open', { ...OPEN, ...NOT_DESIRED }, true, 'removal-due', false],
    ['held, not desired, over', { ...NOT_DESIRED, state: 'rejected' }, true, 'kept', false],
    ['no snapshot', { snapshot: 'none', desiredHash: null, state: 'invalid' }, true, 'no-snapshot', null],
    ['completed, rows gone, held', GONE, true, 'unchanged', true],
    ['completed, rows gone, not held', GONE, false, 'left-out', false],
    ['aborted, rows gone', { ...GONE, state: 'aborted' }, true, 'rows-gone', null],
    ['an accepted addition', { operation: operation('add', 'settled') }, true, 'added', true],
    ['an accepted change', { operation: operation('change', 'settled') }, true, 'changed', true],
    ['uploaded again', { operation: operation('resend', 'settled') }, true, 'sent-again', true],
    [
      'an accepted removal',
      { ...NOT_DESIRED, operation: operation('remove', 'settled') },
      false,
      'removed',
      false,
    ],
    ['an addition, rows gone', { ...GONE, operation: operation('add', 'settled') }, true, 'added', true],
    [
      'sent again after a proven not-applied',
      { operation: operation('add', 'not-applied', 'settled') },
      true,
      'added',
      true,
    ],
    ['a refused request', { operation: operation('add', 'refused') }, false, 'refused', true],
    ['in no request, open', { ...OPEN, operation: operation('add') }, false, 'pending', true],
    ['not applied, open', { ...OPEN, operation: operation('add', 'not-applied') }, false, 'pending', true],
    ['unknown', { ...OPEN, operation: operation('add', 'unknown') }, false, 'pending', true],
    [
      'not applied, over',
      { state: 'aborted', operation: operation('add', 'not-applied') },
      false,
      'never-sent',
      true,
    ],
  ])('%s', (_, part, heldAfter, did, desired) => {
    expect(tellRuns([trace(part)], heldAfter)).toMatchObject([{ did, desired, heldAfter }]);
  });

  test('rule 6: a rejection is the outcome of its operation, whatever its batch says', () => {
    const rejected = { ...operation('change', 'settled'), rejection: { code: 'x', recordedAt: AT } };
    expect(tellRuns([trace({ operation: rejected })], true)).toMatchObject([
      { did: 'rejected', heldBefore: true, heldAfter: true },
    ]);
  });
});

test('whether it was held is known at every run, from the present backwards', () => {
  const change = fc.constantFrom('toggle', 'change', 'nothing', 'refused');
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (steps) => {
      let held = false;
      const truth = steps.map((step) => {
        const before = held;
        if (step === 'toggle') held = !held;
        const kind = step === 'change' && before ? 'change' : before ? 'remove' : 'add';
        const planned =
          step === 'nothing' || (step === 'change' && !before)
            ? null
            : operation(kind, step === 'refused' ? 'refused' : 'settled');
        return { before, after: held, trace: trace({ ...GONE, operation: planned }) };
      });
      const told = tellRuns(
        truth.toReversed().map((one) => one.trace),
        held,
      ).toReversed();
      expect(told.map((run) => [run.heldBefore, run.heldAfter])).toEqual(
        truth.map((one) => [one.before, one.after]),
      );
    }),
  );
});

test.each<[string, readonly Partial<RunTrace>[], boolean, string]>([
  ['nothing is known', [], false, 'unknown'],
  ['held longer ago than the page goes', [], true, 'held'],
  ['left out by all', [NOT_DESIRED, NOT_DESIRED], false, 'left-out'],
  [
    'removed, and left out since',
    [NOT_DESIRED, { ...NOT_DESIRED, operation: operation('remove', 'settled') }],
    false,
    'removed',
  ],
  [
    'a refused removal',
    [{ ...NOT_DESIRED, operation: operation('remove', 'refused') }],
    true,
    'remove-refused',
  ],
  [
    'planned by a run that ended',
    [{ state: 'aborted', operation: operation('add') }, NOT_DESIRED],
    false,
    'left-out',
  ],
  ['under way', [{ ...OPEN, operation: operation('change', 'sending') }, {}], true, 'change-pending'],
])('the verdict where %s', (_, parts, isHeld, verdict) => {
  expect(verdictOf(tellRuns(parts.map(trace), isHeld), isHeld)).toBe(verdict);
});

test('quiet runs beside each other are one entry, and what an open run says is never among them', () => {
  const runs = tellRuns(
    [
      trace({ ...OPEN, runId: '9' }),
      ...['8', '7', '6'].map((runId) => trace({ runId })),
      trace({ runId: '5', ...GONE }),
    ],
    true,
  );
  expect(condense(runs)).toMatchObject([
    { kind: 'run', runId: '9' },
    { kind: 'quiet', did: 'unchanged', firstRunId: '6', lastRunId: '8', runs: 3, isInferred: false },
    { kind: 'quiet', did: 'unchanged', runs: 1, isInferred: true },
  ]);
});
