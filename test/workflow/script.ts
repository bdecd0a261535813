/**
 * Activities that say what a test has written down for them, in place of those that do something: what the workflow makes
 * of every answer can then be seen in an instant. The real ones have tests of their own, and system tests join the two.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { ApplicationFailure, Context } from '@temporalio/activity';
import type { ActivityFailureType } from '../../src/activities/failures.ts';
import type { Activities } from '../../src/activities/index.ts';
import type { AdmitResult, CloseResult, Held, StepResult } from '../../src/activities/results.ts';
import type { Carried, MirrorInput } from '../../src/domain/messages.ts';
import type { RunCounts } from '../../src/domain/run.ts';

export type Name = keyof Activities;
type Args<N extends Name> = Parameters<Activities[N]>[0];
type Result<N extends Name> = Awaited<ReturnType<Activities[N]>>;
export type Answer<N extends Name> = Result<N> | ((args: Args<N>) => Promise<Result<N>>);
/** Answers in order; the last one is given again and again. */
export type Plan = { readonly [N in Name]?: readonly Answer<N>[] };

export const COUNTS: RunCounts = {
  sourceRows: 12,
  members: 10,
  excluded: 2,
  toAdd: 6,
  toChange: 1,
  toRemove: 1,
  unchanged: 3,
  added: 0,
  changed: 0,
  removed: 0,
  rejected: 0,
};
export const BATCH = 'sha256:5e1f';
export const SHOWN = `sha256:${'5a'.repeat(32)}`;

/** Parked, for as long as nobody answers. */
export function held(more: Partial<Held> = {}): Held {
  const asked = { code: 'max-removals', removals: 8, held: 20, shown: SHOWN, leftMs: 86_400_000 } as const;
  return { kind: 'held', ...asked, counts: COUNTS, ...more };
}

export const DONE: StepResult = { kind: 'done', counts: COUNTS };
export const MORE: StepResult = { kind: 'more', counts: COUNTS };
export const STOPPED: StepResult = { kind: 'stopped', counts: COUNTS };
export const BLOCKED: Extract<StepResult, { kind: 'blocked' }> = {
  kind: 'blocked',
  code: 'http-500',
  batch: BATCH,
  counts: COUNTS,
};
export const CLOSED: CloseResult = { kind: 'closed', counts: COUNTS };
export const UNRESOLVED: CloseResult = { kind: 'unresolved', counts: COUNTS };

export function wait(ms: number, code = 'http-429'): StepResult {
  return { kind: 'wait', code, ms, batch: BATCH, counts: COUNTS };
}

type Admitted = Extract<AdmitResult, { kind: 'admitted' }>;

export function admitted(run = '1', more: Partial<Admitted> = {}): Admitted {
  return {
    kind: 'admitted',
    run,
    resume: 'fresh',
    phase: 'init',
    unresolved: false,
    counts: COUNTS,
    searchAttributes: false,
    ...more,
  };
}

/** What an execution is started with that continues another one, in the midst of a run. */
export function continuing(runId: string, more: Partial<Carried> = {}): MirrorInput {
  const carried: Carried = { runId, paused: false, control: 'none', resumed: false, parked: null, ...more };
  return { mirror: 'vip-customers', carried };
}

const ALL_WELL: { readonly [N in Name]: readonly Answer<N>[] } = {
  admit: [admitted()],
  init: [DONE],
  extract: [DONE],
  seal: [{ kind: 'sealed', counts: COUNTS }],
  guard: [{ kind: 'passed', approved: 0, counts: COUNTS }],
  decide: [{ kind: 'decided' }],
  deliver: [DONE],
  finish: [DONE],
  promote: [{ counts: { ...COUNTS, added: 6 } }],
  close: [CLOSED],
  release: [undefined],
};

/** An activity that failed as src/activities/failures.ts would have it. */
export function failing(
  type: ActivityFailureType,
  code: string,
  searchAttributes = false,
): () => Promise<never> {
  const nonRetryable = type !== 'unavailable';
  return async () => {
    const details = [{ code, searchAttributes }];
    throw ApplicationFailure.create({ type, message: `${code}: words`, nonRetryable, details });
  };
}

/** An activity that works until it is told to stop, and then answers; `kept` shows whether it has been told. */
export function untilStopped<T>(answer: T | (() => Promise<T>)): () => Promise<T> {
  return async () => {
    const { cancellationSignal } = Context.current();
    while (!cancellationSignal.aborted) {
      Context.current().heartbeat();
      await sleep(20);
    }
    return typeof answer === 'function' ? (answer as () => Promise<T>)() : answer;
  };
}

export interface Call {
  readonly name: Name;
  readonly args: { readonly [key: string]: unknown };
}

/** One workflow's activities, and what was asked of them. */
export class Script {
  readonly calls: Call[] = [];

  constructor(private readonly plan: Plan = {}) {}

  /** `deliver:upsert`, `close:aborted`: what was called, in order. */
  get steps(): readonly string[] {
    return this.calls.map(({ name, args }) => {
      const detail = args.action ?? args.closing ?? args.how ?? args.verdict;
      return detail === undefined ? name : `${name}:${String(detail)}`;
    });
  }

  count(name: Name): number {
    return this.calls.filter((call) => call.name === name).length;
  }

  /** Resolves once the `nth` call of an activity has begun. */
  async begun(name: Name, nth = 1): Promise<void> {
    for (let tries = 0; this.count(name) < nth; tries += 1) {
      if (tries > 500) throw new Error(`${name} was never called for the ${nth}th time: ${this.steps}`);
      await sleep(20);
    }
  }

  async play<N extends Name>(name: N, args: Args<N>): Promise<Result<N>> {
    const nth = this.count(name);
    this.calls.push({ name, args: { ...args } });
    const answers: readonly Answer<N>[] = this.plan[name] ?? ALL_WELL[name];
    const answer = answers[Math.min(nth, answers.length - 1)];
    return typeof answer === 'function' ? answer(args) : (answer as Result<N>);
  }
}
