/**
 * One attempt of one journal-writing activity (rule 9): it loads the run, raises the epoch, binds the adapter, keeps the
 * heartbeat going, and hears when it is told to stop launching.
 */

import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Writer, WriterContext } from '../destinations/port.ts';
import { RetlError } from '../domain/errors.ts';
import { type BatchId, runId } from '../domain/ids.ts';
import type { RunCounts } from '../domain/run.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import { recordProgress } from '../journal/batches.ts';
import { JournalError } from '../journal/errors.ts';
import { noteWait } from '../journal/open-state.ts';
import { countRun, loadRun, type RunRecord } from '../journal/run-record.ts';
import { type Attempt, beginAttempt, type Holder } from '../journal/runs.ts';
import { readStore } from '../journal/store.ts';
import { type BoundDestination, bindDestination } from './binding.ts';
import { withRetries } from './delivery/record.ts';
import type { Dependencies } from './deps.ts';
import { meteredWriter } from './metered-writer.ts';
import { RequestStore } from './request-store.ts';
import type { RunRef } from './results.ts';
import { noteOf } from './wait-note.ts';

const HEARTBEAT_MS = 2_000;

export interface RunAttempt {
  readonly deps: Dependencies;
  readonly attempt: Attempt;
  readonly record: RunRecord;
  readonly settings: MirrorSettings;
  /** Aborted when the attempt must stop launching: cancelled, paused, or the worker shuts down. */
  readonly stop: AbortSignal;
  counts(): Promise<RunCounts>;
  /** Reads the run again, after a phase has changed. */
  reload(): Promise<RunRecord>;
}

/**
 * Between bounded steps of journal work: where the attempt was told to stop, it ends as something that another attempt
 * takes up. @throws ApplicationFailure, retryable
 */
export function goOn(a: Pick<RunAttempt, 'stop'>): void {
  if (!a.stop.aborted) return;
  throw ApplicationFailure.create({
    type: 'unavailable',
    message: 'told to stop between two steps',
    nonRetryable: false,
  });
}

/** Who this activity's workflow is, as the journal names holders. */
export function holderOf(deps: Dependencies, firstRunId: string): Holder {
  const info = Context.current().info;
  return {
    namespace: info.workflowNamespace ?? info.activityNamespace,
    cluster: deps.cluster,
    workflowId: info.workflowExecution?.workflowId ?? '',
    firstRunId,
  };
}

/** Begins an attempt and runs `work` with it, heartbeating. @throws JournalError, RetlError */
export async function withAttempt<T>(
  deps: Dependencies,
  ref: RunRef,
  step: string,
  work: (a: RunAttempt) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    const id = runId(ref.run);
    const attempt = await beginAttempt(deps.journal, id, holderOf(deps, ref.firstRunId), step);
    const record = await loadRun(deps.journal, id);
    deps.metrics.begin(record.mirror);
    const result = await unlessSuperseded(noting(work), {
      deps,
      attempt,
      record,
      settings: deps.configuration.parse(record.settings),
      stop: context.cancellationSignal,
      counts: () => countRun(deps.journal, id),
      reload: () => loadRun(deps.journal, id),
    });
    deps.metrics.ended(record.mirror, step, result);
    return result;
  } finally {
    clearInterval(timer);
  }
}

/** What `work` comes to, once it is noted where that is a wait. */
function noting<T>(work: (a: RunAttempt) => Promise<T>): (a: RunAttempt) => Promise<T> {
  return async (a) => {
    const result = await work(a);
    const note = noteOf(result);
    if (note === 'none' && a.record.noted) await withRetries(() => noteWait(a.deps.journal, a.attempt, null));
    if (typeof note === 'object') await withRetries(() => noteWait(a.deps.journal, a.attempt, note));
    return result;
  };
}

/**
 * A frozen worker that wakes up may still begin an attempt, which nobody waits for, and fence the one under way. The run is
 * not lost by that: tried again, the activity begins a newer one, or hears who else holds the run, or how it was closed.
 * @throws ApplicationFailure, retryable; what `work` throws
 */
async function unlessSuperseded<T>(work: (a: RunAttempt) => Promise<T>, a: RunAttempt): Promise<T> {
  try {
    return await work(a);
  } catch (error) {
    if (!(error instanceof JournalError) || error.kind !== 'fenced') throw error;
    throw ApplicationFailure.create({ type: 'unavailable', message: error.message, nonRetryable: false });
  }
}

/** Names of the mapped fields, for adapters that write into named columns; a mapping in code has none to tell. */
export function fieldsOf({ mapping }: MirrorSettings): Pick<WriterContext, 'fields'> {
  if (mapping.kind === 'module') return {};
  const fields = mapping.members.map((m) => ({
    identity: Object.keys(m.identity),
    payload: Object.keys(m.payload),
  }));
  return { fields };
}

/** An adapter's writer with what the core wraps around it. */
export interface OpenWriter {
  readonly destination: BoundDestination;
  readonly writer: Writer;
  readonly store: RequestStore;
  /** Raises the writer's abort signal: the drain limit has passed. */
  abandon(): void;
}

/**
 * Opens the run's writer, lets `work` use it, and closes it whatever happens. What a run sends, asks and proves is of its own
 * target: where its revision's references lead elsewhere by now (a variable was changed, another environment has taken the run
 * up), nothing of it may be sent there, nor anything that is not found there be taken for absent.
 * @throws RetlError `run.target-moved` and others; JournalError
 */
export async function withWriter<T>(
  a: Pick<RunAttempt, 'deps' | 'attempt' | 'record' | 'settings'>,
  work: (w: OpenWriter) => Promise<T>,
): Promise<T> {
  const destination = bindDestination(a.deps, a.settings);
  if (destination.targetKey !== a.record.targetKey)
    throw new RetlError('run.target-moved', {
      mirror: a.record.mirror,
      run: a.record.run.toString(),
      connection: a.settings.destination.connection,
    });
  const abort = new AbortController();
  const store = new RequestStore(await readStore(a.deps.journal, a.record.target));
  const context: WriterContext = {
    signal: abort.signal,
    logger: a.deps.logger,
    store,
    epoch: a.attempt.epoch,
    owner: `${a.record.logId}/${a.record.mirror}`,
    formerOwners: a.record.formerOwners.map((mirror) => `${a.record.logId}/${mirror}`),
    run: a.record.run.toString(),
    ...fieldsOf(a.settings),
    progress: (batch: BatchId, value: string) => recordProgress(a.deps.journal, a.attempt, batch, value),
    now: () => Date.now(),
  };
  const opened = await destination.adapter.open(destination.connection, destination.options, context);
  const writer = meteredWriter(opened, destination.capabilities, a.deps.metrics, a.record.mirror);
  try {
    return await work({ destination, writer, store, abandon: () => abort.abort() });
  } finally {
    await writer.close();
  }
}
