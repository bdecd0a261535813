/** A writer whose calls are counted and timed: those that carry members, and the steps of the session. */

import type { BatchOutcome, BatchRequest, Capabilities, StepFound, Writer } from '../destinations/port.ts';
import { checked } from './delivery/checked.ts';
import type { Answer, Call, RunMetrics } from './run-metrics.ts';

export function meteredWriter(
  writer: Writer,
  { recovery }: Pick<Capabilities, 'recovery'>,
  metrics: RunMetrics,
  mirror: string,
): Writer {
  const timed = async <T extends Answer>(
    action: string,
    call: Call,
    ask: () => Promise<T>,
    read: (outcome: T) => Answer = (outcome) => outcome,
  ): Promise<T> => {
    const begun = performance.now();
    const tell = (answer: Answer) => metrics.request(mirror, action, call, answer, performance.now() - begun);
    try {
      const outcome = await ask();
      tell(read(outcome));
      return outcome;
    } catch (error) {
      tell({ kind: 'unknown', code: 'adapter-threw' });
      throw error;
    }
  };
  const batch = (call: Call, request: BatchRequest, ask: () => Promise<BatchOutcome>) => {
    if (call === 'send' || recovery === 'idempotent')
      metrics.bytes(mirror, request.action, Buffer.byteLength(request.body));
    return timed(request.action, call, ask, (outcome) => checked({ request }, outcome));
  };
  const step = <T extends StepFound>(action: 'init' | 'finish', call: Call, ask: () => Promise<T>) =>
    timed(action, call, ask);
  const { tidy } = writer;
  return {
    preflight: () => writer.preflight(),
    checkEmpty: () => writer.checkEmpty(),
    init: () => step('init', 'send', () => writer.init()),
    reconcileInit: (receipt) => step('init', 'reconcile', () => writer.reconcileInit(receipt)),
    attach: (receipt) => writer.attach(receipt),
    upsert: (request) => batch('send', request, () => writer.upsert(request)),
    remove: (request) => batch('send', request, () => writer.remove(request)),
    poll: (request, ...rest) => timed(request.action, 'poll', () => writer.poll(request, ...rest)),
    finish: (request) => step('finish', 'send', () => writer.finish(request)),
    reconcileBatch: (request, ...rest) =>
      batch('reconcile', request, () => writer.reconcileBatch(request, ...rest)),
    reconcileFinish: (request, receipt) =>
      step('finish', 'reconcile', () => writer.reconcileFinish(request, receipt)),
    abort: () => writer.abort(),
    ...(tidy === undefined ? {} : { tidy: () => tidy.call(writer) }),
    close: () => writer.close(),
  };
}
