/** What the checks of the conformance kit share: requests built as the core builds them, and writers with a context. */

import { setTimeout as sleep } from 'node:timers/promises';
import { canonicalJson } from '../domain/canonical-json.ts';
import { type BatchId, epoch, type Sha256, sha256FromHex } from '../domain/ids.ts';
import type { JsonObject, Member } from '../domain/member.ts';
import { buildBody } from '../domain/request.ts';
import type { ConformanceFault, ConformanceHarness, Target } from './conformance-harness.ts';
import type {
  AcceptedUpload,
  Action,
  BatchOutcome,
  BatchRequest,
  Capabilities,
  FinishRequest,
  OperationOutcome,
  PollOutcome,
  Receipt,
  RequestFrame,
  Writer,
  WriterContext,
} from './port.ts';

/** @throws Error `expected …` unless `held`. */
export function demand(held: boolean, expectation: string): void {
  if (!held) throw new Error(`expected ${expectation}`);
}

/** Builds one request as the core does. `serial` keeps the ids of different requests apart, from 0 to 2^32−1. */
export function conformanceRequest(
  frame: RequestFrame,
  action: Action,
  members: readonly Member[],
  serial: number,
): BatchRequest {
  const operations = members.map((member, index) => ({
    id: inventedHash(serial, index + 1),
    identity: canonicalJson(member.identity),
    payload: canonicalJson(action === 'upsert' ? member.upsert : member.remove),
  }));
  const batchId = inventedHash(serial, 0);
  return { batchId, action, idempotencyKey: batchId, operations, body: buildBody(frame, operations) };
}

/** Looks like a content hash and differs by its two numbers. */
function inventedHash(serial: number, index: number): Sha256 {
  const hex = (n: number) => n.toString(16).padStart(8, '0');
  return sha256FromHex(`${hex(serial)}${hex(index)}`.padEnd(64, '0'));
}

let serials = Date.now() % 1_000_000;

/** How often, and how far apart, a staged request is asked about. */
const MOST_POLLS = 50;
const POLL_PAUSE_MS = 5;

/** One harness, with the ways in which checks use it. */
export class ConformanceSession<C = unknown, O = unknown> {
  readonly harness: ConformanceHarness<C, O>;
  readonly capabilities: Capabilities;
  /** What the writer has saved of each request between its steps. */
  readonly #progress = new Map<BatchId, string>();
  /** What was accepted in the present session: what its finish is told. */
  readonly #uploads = new Map<BatchId, AcceptedUpload>();

  constructor(harness: ConformanceHarness<C, O>) {
    this.harness = harness;
    this.capabilities = harness.adapter.capabilities(harness.connection, harness.options);
  }

  can(fault: ConformanceFault): boolean {
    return this.harness.faults[fault] !== undefined;
  }

  async arm(fault: ConformanceFault): Promise<void> {
    await this.harness.faults[fault]?.();
  }

  /** How many members a check puts into one request. */
  get rows(): number {
    return Math.min(5, this.capabilities.maxRows);
  }

  members(count = this.rows, variant = 1): readonly Member[] {
    return Array.from({ length: count }, (_, index) => this.harness.member(index + 1, variant));
  }

  request(action: Action, members: readonly Member[]): BatchRequest {
    const { adapter, options } = this.harness;
    serials += 1;
    return conformanceRequest(adapter.frame(action, options), action, members, serials);
  }

  /** Opens a writer on a new and empty target, runs `body`, and closes it, whatever happens. */
  async withWriter(
    body: (writer: Writer, control: AbortController) => Promise<void>,
    target: Target<C, O> = this.harness,
  ): Promise<void> {
    const { harness } = this;
    await harness.reset();
    this.#uploads.clear();
    const control = new AbortController();
    await this.#using(target, conformanceContext(control.signal, this.#progress), (writer) =>
      body(writer, control),
    );
  }

  /** Opens a writer of a new run, or of a newer attempt of `run`, on the target as it is. */
  async withAttempt(run: string | null, body: (writer: Writer, run: string) => Promise<void>): Promise<void> {
    const context = conformanceContext(new AbortController().signal, this.#progress, run);
    if (run === null) this.#uploads.clear();
    await this.#using(this.harness, context, (writer) => body(writer, context.run));
  }

  /** A writer for whoever only looks: it has no run, and knows the fields that the harness names. */
  async looking(signal: AbortSignal, body: (writer: Writer) => Promise<void>): Promise<void> {
    const { run: _, ...context } = conformanceContext(signal, this.#progress);
    const { fields } = this.harness;
    await this.#using(this.harness, { ...context, ...(fields === undefined ? {} : { fields }) }, body);
  }

  /** Makes a new target hold these members, as a whole run does. */
  async hold(members: readonly Member[]): Promise<void> {
    await this.withWriter(async () => undefined);
    await this.withAttempt(null, async (writer) => {
      const opened = await writer.init();
      demand(opened.kind === 'accepted', `init to be accepted, and not ${opened.kind}`);
      if (opened.kind === 'accepted') await writer.attach(opened.receipt);
      await this.fill(writer, members);
      const finished = await writer.finish(this.finish(members.length));
      demand(finished.kind === 'accepted', `the finish to be accepted, and not ${finished.kind}`);
    });
  }

  async #using(
    target: Target<C, O>,
    context: WriterContext,
    body: (writer: Writer) => Promise<void>,
  ): Promise<void> {
    const writer = await this.harness.adapter.open(target.connection, target.options, context);
    try {
      await body(writer);
    } finally {
      await writer.close();
    }
  }

  /** The finish of what the session has uploaded, which is said to be `members` members. */
  finish(members: number): FinishRequest {
    const uploads = [...this.#uploads.values()];
    return {
      ...conformanceFinish(String(serials), members),
      uploads: async function* () {
        yield* uploads;
      },
    };
  }

  /** A person has resolved the request as accepted: nothing of the adapter's own is known of it. */
  vouch({ batchId, operations }: BatchRequest): void {
    this.#uploads.set(batchId, { batchId, members: operations.length, receipt: { resolved: 'accepted' } });
  }

  /** Upserts all members, in as many requests as it takes, and demands that all are accepted. */
  async fill(writer: Writer, members: readonly Member[]): Promise<void> {
    for (let from = 0; from < members.length; from += this.rows) {
      const request = this.request('upsert', members.slice(from, from + this.rows));
      this.demandAccepted(await this.deliver(writer, request), request);
    }
  }

  /** Sends a request and, where it is staged, polls it to its end. */
  async deliver(writer: Writer, request: BatchRequest): Promise<PollOutcome> {
    const first = request.action === 'upsert' ? await writer.upsert(request) : await writer.remove(request);
    return this.toEnd(writer, request, first);
  }

  /** Polls what is staged until it is not. */
  async toEnd(writer: Writer, request: BatchRequest, first: BatchOutcome): Promise<PollOutcome> {
    let outcome: PollOutcome = first;
    for (let polls = 0; outcome.kind === 'staged' && polls < MOST_POLLS; polls += 1) {
      await sleep(POLL_PAUSE_MS);
      outcome = await this.poll(writer, request, outcome);
      this.demandClean(outcome);
    }
    return outcome;
  }

  poll(
    writer: Writer,
    request: BatchRequest,
    staged: { readonly jobIds: readonly string[]; readonly receipt: Receipt },
  ): Promise<PollOutcome> {
    return writer.poll(request, staged.jobIds, staged.receipt, this.progressOf(request));
  }

  progressOf(request: BatchRequest): string | null {
    return this.#progress.get(request.batchId) ?? null;
  }

  demandAccepted(outcome: PollOutcome, request: BatchRequest): void {
    const outcomes = rowsOf(outcome, request);
    demand(outcomes !== null, `all to be accepted, and not ${outcome.kind}`);
    demand(outcomes?.every(({ kind }) => kind === 'accepted') === true, 'each operation to be accepted');
    this.demandClean(outcome);
    if (request.action !== 'upsert' || !('receipt' in outcome)) return;
    const { batchId, operations } = request;
    this.#uploads.set(batchId, { batchId, members: operations.length, receipt: outcome.receipt });
  }

  /** Outcomes must be JSON that PostgreSQL can keep, and free of secrets. */
  demandClean(outcome: unknown): void {
    const text = JSON.stringify(outcome);
    demand(
      !/\\u0000|\\ud[89a-f]/.test(text.replaceAll('\\\\', '')),
      'receipts without NUL and lone surrogates',
    );
    for (const secret of this.harness.secrets) demand(!text.includes(secret), 'an outcome without secrets');
  }

  async demandHeld(members: readonly Member[]): Promise<void> {
    const sorted = (list: readonly JsonObject[]) =>
      list
        .map((item) => canonicalJson(item))
        .sort()
        .join('\n');
    const held = sorted(await this.harness.held());
    demand(
      held === sorted(members.map(({ upsert }) => upsert)),
      `exactly ${members.length} given members to be held`,
    );
  }
}

/** Of a first answer that is no proof, and of a poll after which the batch is as staged as it was. */
export function provesNothing(outcome: PollOutcome): boolean {
  return outcome.kind === 'unknown' || outcome.kind === 'missing';
}

/** One outcome per operation; `null` where the request as a whole has none. */
export function rowsOf(outcome: PollOutcome, request: BatchRequest): readonly OperationOutcome[] | null {
  if (outcome.kind === 'accepted') return request.operations.map(() => ({ kind: 'accepted' as const }));
  if (outcome.kind !== 'settled') return null;
  return outcome.outcomes.length === request.operations.length ? outcome.outcomes : null;
}

/** A finish with no uploads. */
export function conformanceFinish(generation: string, members: number): FinishRequest {
  serials += 1;
  const batchId = inventedHash(serials, 0);
  return { batchId, idempotencyKey: batchId, generation, members, digest: inventedHash(serials, 1) };
}

/** A context with a working store in memory, a silent logger and the real clock: an attempt of a new run, or of `run`. */
export function conformanceContext(
  signal: AbortSignal,
  progress: Map<BatchId, string> = new Map(),
  run: string | null = null,
): WriterContext & { readonly run: string } {
  const stored = new Map<string, string>();
  serials += 1;
  return {
    signal,
    logger: { info: () => undefined, warn: () => undefined },
    store: {
      get: (key) => stored.get(key),
      set: (key, value) => void stored.set(key, value),
      delete: (key) => void stored.delete(key),
    },
    epoch: epoch(serials),
    owner: 'conformance/kit',
    run: run ?? String(serials),
    progress: (batch, value) => Promise.resolve(void progress.set(batch, value)),
    now: () => Date.now(),
  };
}
