/**
 * A destination under the model's control, as a test would wish every provider to be: it knows what it has applied, how often,
 * and on whose word. What it sees that no rule allows is written down in `violations`.
 */

import type {
  BatchOutcome,
  BatchRequest,
  FinishRequest,
  PollOutcome,
  StepOutcome,
} from '../../src/destinations/port.ts';
import { type Answer, applies, OK } from './answers.ts';
import { Steps } from './steps.ts';

export type Kind = 'idempotent' | 'lookup' | 'manual';

/** Differences, or whole sets: uploads that count at once, or at the finish only. */
export type Replacement = 'none' | 'on_accept' | 'at_finish';

export interface DestinationPlan {
  readonly kind: Kind;
  readonly asynchronous: boolean;
  readonly replacement?: Replacement;
  /** Whether the opening and the finish are taken for later. */
  readonly slow?: boolean;
}

interface Job {
  readonly id: string;
  readonly request: BatchRequest;
  readonly run: string;
  /** How its rows will fare. */
  readonly answer: Answer;
  /** It has come to nothing, for good. */
  failed: boolean;
}

interface Applied {
  readonly request: BatchRequest;
  readonly run: string;
  readonly outcomes: readonly boolean[];
}

/** What stands for the opening of a run's session. */
export function openingOf(run: string): string {
  return `init ${run}`;
}

/** One operation of a run, which happens once at most. */
export function effectOf(run: string, action: 'upsert' | 'remove', payload: string): string {
  return `${run} ${action} ${payload}`;
}

export class ModelDestination {
  readonly kind: Kind;
  readonly asynchronous: boolean;
  readonly replacement: Replacement;
  readonly steps: Steps;
  readonly members = new Map<string, string>();
  /** Whose operation was refused in the run that is under way: they are as they were before it. */
  readonly #refused = new Set<string>();
  /** What the run that is under way has uploaded. */
  #uploaded = new Map<string, string>();
  #uploader = '';
  /** By batch: what became of each of its rows, of the request that was applied. */
  readonly applied = new Map<string, Applied>();
  /** What took effect, by {@link effectOf}: all that the journal may call accepted. */
  readonly effects = new Set<string>();
  readonly violations: string[] = [];
  /** What the set must be before anybody is removed, and at the finish; null while no run is sealed. */
  desired: ReadonlyMap<string, string> | null = null;
  #open = false;
  /** Jobs by batch, where it works asynchronously: what a request asks for is done when somebody asks about it. */
  readonly #jobs = new Map<string, Job>();

  constructor(
    readonly name: string,
    { kind, asynchronous, replacement = 'none', slow = false }: DestinationPlan,
    private readonly answers: Answer[],
  ) {
    this.kind = kind;
    this.asynchronous = asynchronous;
    this.replacement = replacement;
    this.steps = new Steps({
      idempotent: kind === 'idempotent',
      slow,
      answer: () => this.answers.shift() ?? OK,
      violates: (rule) => this.#violates(rule),
    });
  }

  /** Everything that is asked from now on is answered well. */
  behave(): void {
    this.answers.length = 0;
  }

  /** A run begins, whose set is this one. */
  begin(desired: ReadonlyMap<string, string>): void {
    this.desired = desired;
    this.#refused.clear();
  }

  /** Whether it holds the sealed set, but for those whom it has refused itself. */
  isExact(): boolean {
    const ids = new Set([...this.members.keys(), ...(this.desired?.keys() ?? [])]);
    const differs = (id: string) => this.members.get(id) !== this.desired?.get(id);
    return this.desired !== null && [...ids].every((id) => !differs(id) || this.#refused.has(id));
  }

  /** Whether a run has sent every member of its set, those included that have not changed. */
  hasSentAll(run: string): boolean {
    const sent = (id: string, v: string) =>
      this.effects.has(effectOf(run, 'upsert', JSON.stringify({ id, v })));
    return [...(this.desired ?? [])].every(([id, v]) => sent(id, v) || this.#refused.has(id));
  }

  /** Takes a request. A second copy of it is answered like the first where it is idempotent, and is a violation elsewhere. */
  take(request: BatchRequest, run: string): BatchOutcome {
    const answer = this.answers.shift() ?? OK;
    if (this.asynchronous) return this.#stage(request, run, answer);
    const before = this.applied.get(request.batchId);
    if (before === undefined && !applies(answer)) return this.#turnAway(request, answer);
    if (before !== undefined && this.kind !== 'idempotent')
      this.#violates(`${request.batchId} was sent twice`);
    if (before !== undefined && !applies(answer)) return refusal(answer);
    const applied = before ?? this.#apply(request, run, answer);
    return this.#reply(request, applied, answer);
  }

  /** What has become of a job; asked about well, it is done. */
  poll(request: BatchRequest, jobIds: readonly string[]): PollOutcome {
    const answer = this.answers.shift() ?? OK;
    const job = this.#jobs.get(request.batchId);
    if (job === undefined || jobIds.join() !== job.id) {
      this.#violates('rule 5: a job was asked about that there is not');
      return { kind: 'missing', code: 'no-such-job' };
    }
    if (answer.kind === 'too-large') return { kind: 'staged', jobIds: [job.id], receipt: {} };
    const done = this.applied.get(request.batchId);
    if (done === undefined && answer.kind === 'refuse') job.failed = true;
    if (job.failed) return this.#turnAway(request, { kind: 'refuse' });
    if (done === undefined && !applies(answer)) return refusal(answer);
    if (done !== undefined && answer.kind === 'lost') return refusal(answer);
    return this.#reply(request, done ?? this.#apply(request, job.run, worse(job.answer, answer)), answer);
  }

  /** A person does by hand what was not done of a batch; false where nothing of it was. */
  complete(batchId: string): boolean {
    const job = this.#jobs.get(batchId);
    const applied =
      this.applied.get(batchId) ??
      (job?.failed === false ? this.#apply(job.request, job.run, job.answer) : undefined);
    if (applied === undefined) return false;
    const { request, run, outcomes } = applied;
    request.operations.forEach((op, i) => {
      if (outcomes[i] === true) return;
      this.effects.add(effectOf(run, request.action, op.payload));
      const { id, v } = JSON.parse(op.payload) as { readonly id: string; readonly v?: string };
      this.#do(request.action, id, v ?? '', run);
    });
    this.applied.set(batchId, { request, run, outcomes: outcomes.map(() => true) });
    return true;
  }

  /** What a look-up tells; it may fail, too. */
  lookUp(request: BatchRequest): BatchOutcome {
    if (this.kind !== 'lookup') this.#violates(`a ${this.kind} destination was asked`);
    const answer = this.answers.shift() ?? OK;
    if (answer.kind !== 'ok') return { kind: 'unknown', code: 'look-up-failed' };
    const job = this.#jobs.get(request.batchId);
    if (job !== undefined) return { kind: 'staged', jobIds: [job.id], receipt: {} };
    const applied = this.applied.get(request.batchId);
    if (applied === undefined) return notApplied('not-found');
    return settled(applied.outcomes);
  }

  /** Opens the session of a run. */
  open(run: string): StepOutcome {
    return this.steps.take(openingOf(run), () => {
      if (this.#open && this.kind !== 'idempotent') this.#violates('a second session was opened');
      this.#open = true;
    });
  }

  /** Whatever was opened is cleaned up. */
  close(): StepOutcome {
    const open = [...this.#jobs.values()].some(
      ({ request, failed }) => !failed && !this.applied.has(request.batchId),
    );
    if (open || this.steps.underWay) this.#violates('rule 10: aborted while something is under way');
    const answer = this.answers.shift() ?? OK;
    if (applies(answer)) this.#open = false;
    return answer.kind === 'ok' ? { kind: 'accepted', receipt: {} } : { kind: 'unknown', code: 'lost' };
  }

  /** `uploads`: batches that it is told to conclude. */
  finish(request: FinishRequest, run: string, uploads: readonly string[]): StepOutcome {
    return this.steps.take(request.batchId, () => this.#conclude(request, run, uploads));
  }

  #conclude(request: FinishRequest, run: string, uploads: readonly string[]): void {
    this.#open = false;
    if (this.replacement !== 'none') this.#replace(run, uploads);
    if (!this.isExact()) this.#violates('rule 1: finished with another set than the sealed one');
    if (request.members !== this.desired?.size) this.#violates('the finish tells another number of members');
  }

  /** Whatever was not uploaded by the run goes. */
  #replace(run: string, uploads: readonly string[]): void {
    if (uploads.some((batch) => !this.applied.has(batch)))
      this.#violates('the finish names an upload that is not there');
    const kept = this.#uploader === run ? this.#uploaded : new Map<string, string>();
    for (const id of this.members.keys()) {
      if (!kept.has(id)) this.effects.add(effectOf(run, 'remove', JSON.stringify({ id })));
    }
    this.members.clear();
    for (const [id, v] of kept) this.members.set(id, v);
  }

  /** Nothing is applied. */
  #turnAway(request: BatchRequest, answer: Answer): BatchOutcome {
    for (const op of request.operations) {
      const { id } = JSON.parse(op.payload) as { readonly id: string };
      if (answer.kind === 'refuse' || answer.kind === 'too-large') this.#refused.add(id);
    }
    return refusal(answer);
  }

  /** Takes a request for later: one job each, whatever is asked. */
  #stage(request: BatchRequest, run: string, answer: Answer): BatchOutcome {
    const before = this.#jobs.get(request.batchId);
    if (!applies(answer)) return this.#turnAway(request, answer);
    if (before !== undefined && this.kind !== 'idempotent') this.#violates('rule 5: a second job was begun');
    const job = before ?? { id: `job-${this.#jobs.size + 1}`, request, run, answer, failed: false };
    this.#jobs.set(request.batchId, job);
    if (answer.kind === 'throws') throw new Error('an adapter that breaks');
    if (answer.kind === 'lost') return { kind: 'unknown', code: 'lost' };
    return { kind: 'staged', jobIds: answer.kind === 'short' ? [] : [job.id], receipt: {} };
  }

  #apply(request: BatchRequest, run: string, answer: Answer): Applied {
    const rejected = answer.kind === 'reject' ? answer.at % request.operations.length : -1;
    const outcomes = request.operations.map((op, i) => {
      const { id, v } = JSON.parse(op.payload) as { readonly id: string; readonly v?: string };
      this.#refused.delete(id);
      if (i === rejected) {
        this.#refused.add(id);
        return false;
      }
      const effect = effectOf(run, request.action, op.payload);
      if (this.effects.has(effect)) this.#violates(`rule 3: ${effect} took effect twice`);
      this.effects.add(effect);
      this.#do(request.action, id, v ?? '', run);
      return true;
    });
    const applied = { outcomes, request, run };
    this.applied.set(request.batchId, applied);
    return applied;
  }

  #do(action: 'upsert' | 'remove', id: string, v: string, run: string): void {
    if (action === 'remove') {
      this.#remove(id);
      return;
    }
    if (this.#uploader !== run) this.#uploaded = new Map();
    this.#uploader = run;
    this.#uploaded.set(id, v);
    if (this.replacement !== 'at_finish') this.members.set(id, v);
  }

  #remove(id: string): void {
    if (this.replacement !== 'none') this.#violates('rule 1: a native replacement has removed somebody');
    if (this.desired?.has(id) !== false) this.#violates('a member of the sealed set was removed');
    for (const [wanted, payload] of this.desired ?? []) {
      if (this.members.get(wanted) !== payload && !this.#refused.has(wanted))
        this.#violates('rule 1: a removal before every addition was accepted');
    }
    this.members.delete(id);
  }

  #reply(request: BatchRequest, { outcomes }: Applied, answer: Answer): BatchOutcome {
    switch (answer.kind) {
      case 'lost':
        return { kind: 'unknown', code: 'lost' };
      case 'throws':
        throw new Error('an adapter that breaks');
      case 'short':
        return settled(outcomes.slice(1));
      default:
        if (outcomes.length !== request.operations.length) throw new Error('the batch has changed');
        return settled(outcomes);
    }
  }

  #violates(rule: string): void {
    this.violations.push(rule);
  }
}

/** Of two answers the one that rejects something. */
function worse(one: Answer, other: Answer): Answer {
  return one.kind === 'reject' ? one : other;
}

/** The answer to a request that is not applied. */
function refusal(answer: Answer): BatchOutcome {
  switch (answer.kind) {
    case 'refuse':
      return { kind: 'refused', code: 'http-400', reason: 'no', divisible: true };
    case 'misconfigured':
      return { kind: 'misconfigured', code: 'http-401', reason: 'no' };
    case 'too-large':
      return { ...notApplied('http-413'), tooLarge: true };
    case 'later':
      return notApplied('http-429');
    default:
      return { kind: 'unknown', code: 'lost' };
  }
}

function notApplied(code: string): Extract<BatchOutcome, { kind: 'not-applied' }> {
  return { kind: 'not-applied', code, retryAfterMs: null, tooLarge: false };
}

function settled(outcomes: readonly boolean[]): BatchOutcome {
  return {
    kind: 'settled',
    outcomes: outcomes.map((ok) =>
      ok ? { kind: 'accepted' } : { kind: 'rejected', code: 'invalid', reason: 'no such member' },
    ),
    receipt: {},
  };
}

export function same(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string> | null): boolean {
  return b !== null && a.size === b.size && [...a].every(([id, payload]) => b.get(id) === payload);
}
