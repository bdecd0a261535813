/** Ends a logical run otherwise than by completing it, or lets it go to be resumed (design.md section 4, Control). */

import { RetlError } from '../domain/errors.ts';
import { openBatches, stepBatch } from '../journal/batch-record.ts';
import { closeRun, releaseRun } from '../journal/runs.ts';
import { type RunAttempt, withAttempt, withWriter } from './attempt.ts';
import { unlessClosed } from './closed.ts';
import type { Dependencies } from './deps.ts';
import type { CloseArgs, CloseResult, ReleaseArgs } from './results.ts';

const UNRESOLVED = ['sending', 'unknown', 'staged'];

/** @throws JournalError; RetlError where the provider cannot be reached to abort its session. */
export async function close(deps: Dependencies, args: CloseArgs): Promise<CloseResult> {
  return unlessClosed(
    deps,
    args,
    () => withAttempt(deps, args, 'close', (a) => closeOpen(a, args)),
    (closing, counts) => (closing === args.closing ? { kind: 'closed', counts } : null),
  );
}

async function closeOpen(a: RunAttempt, args: CloseArgs): Promise<CloseResult> {
  const { journal } = a.deps;
  const counts = await a.counts();
  if (a.record.phase === 'promote') return { kind: 'too-late', counts };
  const open = await openBatches(journal, a.attempt);
  if (open.some((b) => UNRESOLVED.includes(b.state))) return { kind: 'unresolved', counts };
  await abortSession(a);
  await closeRun(journal, a.attempt, args.closing, args.reason);
  return { kind: 'closed', counts };
}

/** Rule 10: the adapter's `abort` is called only when nothing is sending, staged or unknown. */
async function abortSession(a: RunAttempt): Promise<void> {
  const init = await stepBatch(a.deps.journal, a.attempt, 'init');
  if (init?.state !== 'settled') return;
  try {
    const outcome = await withWriter(a, (w) => w.store.collect(() => w.writer.abort()));
    if (outcome.value.kind !== 'accepted') {
      throw new RetlError('destination.unavailable', { step: 'abort', answer: outcome.value.kind });
    }
  } catch (error) {
    // Broken configuration must not keep a run open for ever; what the provider still has of the session is logged.
    if (!(error instanceof RetlError) || error.recourse === 'retry') throw error;
    a.deps.logger.warn('the session could not be aborted', { mirror: a.record.mirror, code: error.code });
  }
}

/** Lets an open run go: the next execution takes it over without asking Temporal. @throws JournalError */
export async function release(deps: Dependencies, args: ReleaseArgs): Promise<void> {
  await withAttempt(deps, args, 'release', (a) => releaseRun(deps.journal, a.attempt, args.how, args.reason));
}
