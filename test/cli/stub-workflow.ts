/** Stands in for the workflow `mirror`: the mirror's name says how the run goes, so that every ending can be followed. */

import {
  ApplicationFailure,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import {
  type MirrorInput,
  type MirrorResult,
  type Outcome,
  type Parked,
  PROGRESS_QUERY,
  type Progress,
  SIGNALS,
  type SignalName,
  type Waiting,
} from '../../src/domain/messages.ts';
import type { RunCounts } from '../../src/domain/run.ts';

const COUNTS: RunCounts = {
  sourceRows: 10,
  members: 10,
  excluded: 0,
  toAdd: 8,
  toChange: 0,
  toRemove: 0,
  unchanged: 2,
  added: 4,
  changed: 0,
  removed: 0,
  rejected: 0,
};

const PARKED: Parked = {
  code: 'max-removal-share',
  removals: 900,
  held: 1000,
  shown: `sha256:${'ab'.repeat(32)}`,
  deadlineMs: 4_000_000_000_000,
};

export async function mirror(input: MirrorInput): Promise<MirrorResult> {
  const got: SignalName[] = [];
  for (const signal of SIGNALS)
    setHandler(defineSignal(signal), () => {
      got.push(signal);
    });
  setHandler(defineQuery<Progress>(PROGRESS_QUERY), () => progressOf(input.mirror, got));
  await sleep(input.carried === undefined ? 300 : 600);
  const [, type = ''] = input.mirror.split('-as-');
  const goes = (how: string) => input.mirror.startsWith(how);
  if (goes('fails'))
    throw ApplicationFailure.create({ type, message: `words of ${type}`, nonRetryable: true });
  if (goes('continues') && input.carried === undefined)
    await continueAsNew({
      ...input,
      carried: { runId: null, paused: false, control: 'none', resumed: false },
    });
  if (goes('waits')) await condition(() => got.includes('cancel') || got.includes('abort'));
  return { outcome: outcomeOf(got), runId: '7', counts: { ...COUNTS, added: 8 }, abortTooLate: false };
}

function outcomeOf(got: readonly SignalName[]): Outcome {
  if (got.includes('abort')) return 'aborted';
  return got.includes('cancel') ? 'cancelled' : 'completed';
}

function progressOf(name: string, got: readonly SignalName[]): Progress {
  const paused = got.lastIndexOf('pause') > got.lastIndexOf('resume');
  const [, type = ''] = name.split('-as-');
  const waiting: Waiting | null =
    type === 'blocked'
      ? { kind: 'blocked', code: 'connection-reset', untilMs: null, batch: 'sha256:abc' }
      : paused
        ? { kind: 'paused', code: 'paused', untilMs: null, batch: null }
        : type === 'parked'
          ? { kind: 'parked', code: PARKED.code, untilMs: PARKED.deadlineMs, batch: null }
          : null;
  return {
    mirror: name,
    runId: '7',
    phase: 'additions',
    counts: COUNTS,
    waiting,
    control: 'none',
    paused,
    parked: type === 'parked' ? PARKED : null,
  };
}
