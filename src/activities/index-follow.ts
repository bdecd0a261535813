/** The activities of the workflow `index`: a window of replay, bounded in time, and the beginning of a new build. */

import { Context } from '@temporalio/activity';
import type { Logger } from '../destinations/port.ts';
import type { Refusal } from '../domain/checkpoint-validation.ts';
import { ERROR_CODES } from '../domain/errors.ts';
import { type IndexPlace, type IndexStep, indexWorkflowId } from '../domain/index-messages.ts';
import type { Indexer } from '../indexing/indexer.ts';
import { rebuild } from '../indexing/rebuild.ts';
import { follow, type Progress, progressOf, type ReplayDeps } from '../indexing/replay.ts';
import { logLag } from '../journal/log-reader.ts';
import { failing } from './failures.ts';

export interface IndexDependencies {
  readonly replay: ReplayDeps;
  readonly logger: Logger;
  /** The index as it is configured now; whoever opens it closes it. @throws RetlError `index.unknown`, `config.…` */
  open(index: string): Promise<Indexer>;
  /** The names of all that are configured. @throws RetlError `config.…` */
  names(): Promise<readonly string[]>;
}

export interface FollowArgs {
  readonly index: string;
  readonly windowMs: number;
}

const HEARTBEAT_MS = 2_000;

export function createIndexActivities(deps: IndexDependencies) {
  return {
    followIndex: (args: FollowArgs) => failing(deps.logger, () => followWindow(deps, args)),
    rebuildIndex: ({ index }: { readonly index: string }) =>
      failing(deps.logger, () => beginAnew(deps, index)),
  };
}

export type IndexActivities = ReturnType<typeof createIndexActivities>;

function followWindow(deps: IndexDependencies, { index, windowMs }: FollowArgs): Promise<IndexStep> {
  const { cancellationSignal } = Context.current();
  const until = performance.now() + windowMs;
  const stopped = () => cancellationSignal.aborted || performance.now() >= until;
  return withIndexer(deps, index, async (indexer) => {
    const followed = await follow(deps.replay, indexer, stopped);
    if (followed.kind === 'refused') return refused(followed);
    return { kind: followed.kind, ...(await placeOf(deps, followed)) };
  });
}

function beginAnew(deps: IndexDependencies, index: string): Promise<IndexStep> {
  return withIndexer(deps, index, async (indexer) => {
    const begun = await rebuild(deps.replay, indexer);
    if (begun.kind === 'refused') return refused(begun);
    return { kind: 'more', ...(await placeOf(deps, progressOf(begun.build))) };
  });
}

async function placeOf(deps: IndexDependencies, at: Progress): Promise<IndexPlace> {
  const { build, state, position, lagsFrom, rows } = at;
  const lag = await logLag(deps.replay.journal, lagsFrom);
  return {
    build: `${build}`,
    state,
    position: position === null ? null : `${position}`,
    rows: `${rows}`,
    lag: { positions: `${lag.positions}`, ms: lag.ms },
  };
}

function refused({ code }: Refusal): IndexStep {
  return { kind: 'refused', code, message: ERROR_CODES[code].meaning };
}

async function withIndexer<T>(
  deps: IndexDependencies,
  index: string,
  work: (indexer: Indexer) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    const indexer = await deps.open(index);
    try {
      return await work(indexer);
    } finally {
      await indexer.close();
    }
  } finally {
    clearInterval(timer);
  }
}

/**
 * Tells the indexes that a run has committed. A courtesy: an index that does not hear of it looks within a minute, one whose
 * workflow does not run is not started, and no run fails for it.
 */
export async function wakeIndexes(names: () => Promise<readonly string[]>): Promise<void> {
  try {
    const { client } = Context.current();
    for (const name of await names())
      await client.workflow
        .getHandle(indexWorkflowId(name))
        .signal('wake')
        .catch(() => undefined);
  } catch {
    // Not configured, or nobody can be asked: they look by themselves.
  }
}
