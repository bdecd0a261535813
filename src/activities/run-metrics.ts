/** What activities count as they work: once for each request, page or step, never for each member. */

import type { MetricMeter } from '@temporalio/common';
import type { MaintenanceCounts } from '../domain/maintenance.ts';
import { CodeLabels } from '../domain/metrics.ts';
import type { Action } from '../domain/request.ts';
import { counter, histogram } from './instruments.ts';

/** `reconcile`: what became of an earlier one was asked, by a look-up or by the same bytes again. */
export type Call = 'send' | 'reconcile' | 'poll';

export interface Answer {
  readonly kind: string;
  readonly code?: string;
}

/** Ends of a step after which its work is not done: it goes on later, or not before a person has seen to it, or never. */
const INTERRUPTIONS: readonly string[] = [
  'wait',
  'pending',
  'held',
  'blocked',
  'rejected',
  'misconfigured',
  'invalid',
  'guard-rejected',
  'guard-expired',
  'plan-stale',
];

export class RunMetrics {
  readonly #codes = new CodeLabels();
  readonly #rows;
  readonly #members;
  readonly #requests;
  readonly #duration;
  readonly #bytes;
  readonly #interruptions;
  readonly #removed;

  constructor(meter: MetricMeter) {
    this.#rows = counter(meter, 'retl_source_rows_total');
    this.#members = counter(meter, 'retl_members_total');
    this.#requests = counter(meter, 'retl_requests_total');
    this.#duration = histogram(meter, 'retl_request_duration_seconds');
    this.#bytes = counter(meter, 'retl_request_bytes_total');
    this.#interruptions = counter(meter, 'retl_interruptions_total');
    this.#removed = counter(meter, 'retl_maintenance_removed_total');
  }

  /** Lets the mirror's counts begin at 0, so that the first rejection is seen as a rise. */
  begin(mirror: string): void {
    for (const action of ['upsert', 'remove'])
      for (const outcome of ['accepted', 'rejected']) this.#members(0, { mirror, action, outcome });
  }

  sourceRows(mirror: string, rows: number): void {
    this.#rows(rows, { mirror });
  }

  members(mirror: string, action: Action, accepted: number, rejected: number): void {
    if (accepted > 0) this.#members(accepted, { mirror, action, outcome: 'accepted' });
    if (rejected > 0) this.#members(rejected, { mirror, action, outcome: 'rejected' });
  }

  request(mirror: string, action: string, call: Call, answer: Answer, ms: number): void {
    const code = this.#codes.of(answer.code ?? '');
    this.#requests(1, { mirror, action, call, outcome: answer.kind, code });
    this.#duration(ms / 1000, { mirror, action, call });
  }

  bytes(mirror: string, action: Action, bytes: number): void {
    this.#bytes(bytes, { mirror, action });
  }

  /** Counts what a step of maintenance came to. */
  maintained(counts: Partial<MaintenanceCounts>): void {
    for (const [what, count] of Object.entries(counts)) if (count > 0) this.#removed(count, { what });
  }

  /** Counts the result of a step where it is an interruption. */
  ended(mirror: string, step: string, result: unknown): void {
    if (!isAnswer(result) || !INTERRUPTIONS.includes(result.kind)) return;
    const code = this.#codes.of(result.code ?? '');
    this.#interruptions(1, { mirror, step, kind: result.kind, code });
  }
}

function isAnswer(result: unknown): result is Answer {
  return typeof result === 'object' && result !== null && 'kind' in result && typeof result.kind === 'string';
}
