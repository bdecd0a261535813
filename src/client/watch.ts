/** Follows one run: its progress while it lasts, then how it ended. Looking on changes nothing and may stop any time. */

import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { PROGRESS_QUERY, type Progress } from '../domain/messages.ts';
import type { TemporalClient } from './connect.ts';
import { type Ending, endingFrom, endingOf, temporalFailure } from './failure.ts';
import type { Execution } from './start.ts';

export type WatchEvent =
  | { readonly kind: 'progress'; readonly progress: Progress }
  /** No worker answers; ms since the last answer or since watching began. */
  | { readonly kind: 'no-answer'; readonly sinceMs: number }
  /** The last event. */
  | { readonly kind: 'ended'; readonly ending: Ending };

export interface WatchOptions {
  /** Ms between two looks. */
  readonly intervalMs?: number;
  /** Ms that a worker may take to answer. */
  readonly answerWithinMs?: number;
  /** Stops looking at once, also in the middle of a long poll. */
  readonly signal?: AbortSignal;
}

/**
 * Yields until the run, its continuations included, has ended.
 * @throws RetlError `temporal.connect` where Temporal is lost meanwhile; the run goes on.
 */
export async function* watchRun(
  temporal: TemporalClient,
  execution: Execution,
  options: WatchOptions = {},
): AsyncGenerator<WatchEvent, void> {
  const { intervalMs = 500, answerWithinMs = 5_000 } = options;
  // A long poll that is left alone would keep the connection, and with it the process, for many seconds.
  const done = new AbortController();
  const signal = options.signal === undefined ? done.signal : AbortSignal.any([done.signal, options.signal]);
  // The SDK adds a listener for each long poll of a run that lasts; that is no leak worth a warning.
  setMaxListeners(0, signal);
  const ended = temporal.client.connection.withAbortSignal(signal, () => endOf(temporal, execution));
  // Whoever stops looking must not be told of what happens to the answer.
  ended.catch(() => undefined);
  try {
    let answeredAt = Date.now();
    for (;;) {
      const next = await Promise.race([ended, progressOf(temporal, execution, answerWithinMs)]);
      if (next !== null && next.kind === 'ended') return yield next;
      if (next === null) yield { kind: 'no-answer', sinceMs: Date.now() - answeredAt };
      else {
        answeredAt = Date.now();
        yield next;
      }
      const last = await Promise.race([ended, sleep(intervalMs, null)]);
      if (last !== null) return yield last;
    }
  } finally {
    done.abort();
  }
}

/** What the run under way is doing now; `null` where nobody answers within `answerWithinMs`. */
export async function readProgress(
  temporal: TemporalClient,
  workflowId: string,
  answerWithinMs: number,
): Promise<Progress | null> {
  const event = await progressOf(temporal, { workflowId, runId: null }, answerWithinMs);
  return event?.progress ?? null;
}

type Ended = Extract<WatchEvent, { kind: 'ended' }>;

async function endOf({ client }: TemporalClient, { workflowId, runId }: Execution): Promise<Ended> {
  try {
    // Bound to the first execution: the result follows its continuations, and no later run of the same id.
    const result: unknown = await client.workflow.getHandle(workflowId, runId).result();
    return { kind: 'ended', ending: endingFrom(result) };
  } catch (error) {
    const ending = endingOf(error);
    if (ending === null) throw temporalFailure(error, 'result');
    return { kind: 'ended', ending };
  }
}

async function progressOf(
  { client }: TemporalClient,
  { workflowId, runId }: { readonly workflowId: string; readonly runId: string | null },
  answerWithinMs: number,
): Promise<Extract<WatchEvent, { kind: 'progress' }> | null> {
  const chain = runId === null ? {} : { firstExecutionRunId: runId };
  const handle = client.workflow.getHandle(workflowId, undefined, chain);
  try {
    const progress = await client.connection.withDeadline(Date.now() + answerWithinMs, () =>
      handle.query<Progress>(PROGRESS_QUERY),
    );
    return { kind: 'progress', progress };
  } catch {
    // No worker, one that is busy, or the moment between two executions: all of them are no answer.
    return null;
  }
}
