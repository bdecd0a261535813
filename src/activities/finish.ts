/** Finishes the session explicitly, also for an empty or unchanged snapshot (rule 10). */

import type { AcceptedUpload, FinishRequest } from '../destinations/port.ts';
import type { BatchId } from '../domain/ids.ts';
import { settledUploads, stepBatch } from '../journal/batch-record.ts';
import { type RunAttempt, withAttempt, withWriter } from './attempt.ts';
import type { Dependencies } from './deps.ts';
import { attachWriter } from './init.ts';
import type { StepArgs, StepResult } from './results.ts';
import { runStep } from './step.ts';

/** @throws RetlError, JournalError */
export async function finishRun(deps: Dependencies, ref: StepArgs): Promise<StepResult> {
  return withAttempt(deps, ref, 'finish', async (a) => {
    if (a.record.phase !== 'finish') return { kind: 'done', counts: await a.counts() };
    return withWriter(a, async (w) => {
      // A finish that is pending is only asked about: no session is rejoined for that.
      const pending = (await stepBatch(deps.journal, a.attempt, 'finish'))?.state === 'staged';
      const unready = pending ? null : await attachWriter(a, w);
      if (unready !== null) return unready;
      return runStep(a, w, {
        action: 'finish',
        resolveOnly: ref.resolveOnly ?? false,
        pollNow: ref.pollNow ?? false,
        request: (id) => requestOf(a, id),
        send: (request) => w.writer.finish(known(request)),
        reconcile: (request, batch) =>
          w.writer.reconcileFinish(known(request), batch.receipt === null ? null : JSON.parse(batch.receipt)),
      });
    });
  });
}

function requestOf(a: RunAttempt, id: BatchId): FinishRequest {
  const { generation, generationDigest, members } = a.record;
  if (generation === null || generationDigest === null)
    throw new Error('rule 1: no sealed generation to finish');
  return {
    batchId: id,
    idempotencyKey: id,
    generation: generation.toString(),
    members,
    digest: generationDigest,
    uploads: () => uploadsOf(a),
  };
}

/** Uploads read from the journal at once. */
const PAGE = 500;

async function* uploadsOf({ deps, attempt }: RunAttempt): AsyncGenerator<AcceptedUpload, void> {
  for (let after = 0n; ; ) {
    const page = await settledUploads(deps.journal, attempt, after, PAGE);
    for (const { id, accepted, receipt } of page) {
      yield { batchId: id, members: accepted, receipt: JSON.parse(receipt) };
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = last.last;
  }
}

function known(request: FinishRequest | null): FinishRequest {
  if (request === null) throw new Error('a finish has a request');
  return request;
}
