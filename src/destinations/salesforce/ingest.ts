/**
 * One request as an ingest job, in steps. The order is what makes a crash harmless (rule 3): the job's ID is saved before
 * anything is put into the job, and the job does not begin before the word `UploadComplete`, which is said once the data
 * is known to be there. Until that word nothing can have been applied; after it the job is asked.
 */

import type { BatchOutcome, BatchRequest, WriterContext } from '../port.ts';
import type { Called, SalesforceApi, Trouble } from './api.ts';
import type { SalesforceOptions } from './options.ts';
import { deleteCsv, upsertCsv } from './payload.ts';
import { type Progress, type Target, writeProgress } from './progress.ts';
import { findTargets } from './records.ts';
import { beforehand } from './results.ts';

export interface IngestParts {
  readonly api: SalesforceApi;
  readonly options: SalesforceOptions;
  readonly context: WriterContext;
  /** How long the steps of one request may go on starting further ones, in ms. */
  readonly budgetMs: number;
}

export class Ingest {
  readonly #parts: IngestParts;

  constructor(parts: IngestParts) {
    this.#parts = parts;
  }

  async upsert(request: BatchRequest): Promise<BatchOutcome> {
    const { options } = this.#parts;
    return this.#send(request, 'upsert', upsertCsv(request.operations, options), null, this.#clock());
  }

  async remove(request: BatchRequest): Promise<BatchOutcome> {
    const { api, options } = this.#parts;
    const late = this.#clock();
    const found = await findTargets(api, options, request.operations, late);
    if (found.kind !== 'ok') return nothingYet(aboutSettings(found));
    const targets = found.value;
    const records = targets.filter((target) => typeof target === 'string');
    if (records.length === 0) return settledBeforehand(targets);
    return this.#send(request, 'delete', deleteCsv(records), targets, late);
  }

  /** What became of a request whose answer was lost; `saved`: what it had written down. */
  async reconcile(saved: Progress | null): Promise<BatchOutcome> {
    // The ID is saved before the first byte of data leaves. A job that was made meanwhile is empty, and never begins.
    if (saved === null) return notApplied('nothing-uploaded');
    const asked = await this.#parts.api.job(saved.job);
    if (asked.kind !== 'ok') return unknown('lookup', asked);
    const { state, processed } = asked.value;
    if (state === 'Open')
      return saved.step === 'uploaded' ? this.#begin(saved.job) : this.#abandon(saved.job);
    const neverBegun = state === 'Aborted' && saved.step === 'created' && (processed ?? 0) === 0;
    return neverBegun ? notApplied('job-abandoned') : this.#staged(saved.job);
  }

  /** Whether the time for further steps is over. */
  #clock(): () => boolean {
    const { context, budgetMs } = this.#parts;
    const until = context.now() + budgetMs;
    return () => context.now() > until;
  }

  async #send(
    request: BatchRequest,
    operation: 'upsert' | 'delete',
    csv: string,
    targets: readonly Target[] | null,
    late: () => boolean,
  ): Promise<BatchOutcome> {
    const { api, options, context } = this.#parts;
    if (late()) return notApplied('too-slow');
    const made = await api.createJob(operation, options.object, options.external_id);
    if (made.kind !== 'ok')
      return made.kind === 'unsure' ? unknown('create', made) : nothingYet(aboutSettings(made));
    const job = made.value.id;
    const save = (step: Progress['step']) =>
      context.progress(request.batchId, writeProgress({ job, step, targets }));
    await save('created');
    const uploaded = late() ? LATE : await api.upload(job, csv);
    if (uploaded.kind !== 'ok') return this.#notUploaded(job, uploaded);
    await save('uploaded');
    return late() ? { kind: 'unknown', code: 'too-slow' } : this.#begin(job);
  }

  /** Nothing of it begins without the word; the job is told so, as far as that goes. */
  async #notUploaded(job: string, trouble: Trouble): Promise<BatchOutcome> {
    // The call was given up from outside: nothing more may be sent, and the next attempt finds the job.
    if (trouble.kind === 'unsure' && trouble.code === 'cancelled') return unknown('upload', trouble);
    await this.#parts.api.setState(job, 'Aborted');
    if (trouble.kind === 'refused' && trouble.status === 413)
      return { kind: 'not-applied', code: `upload-${trouble.code}`, retryAfterMs: null, tooLarge: true };
    if (trouble.kind === 'unsure') return notApplied(`upload-${trouble.code}`);
    const outcome = nothingYet(trouble);
    // It is the members' data that was refused, perhaps for one of them.
    return outcome.kind === 'refused' ? { ...outcome, divisible: true } : outcome;
  }

  /** The word that begins the job. Saying it twice begins nothing twice: it is one job, with one state. */
  async #begin(job: string): Promise<BatchOutcome> {
    const told = await this.#parts.api.setState(job, 'UploadComplete');
    if (told.kind !== 'ok') return unknown('close', told);
    if (told.value.state === 'Open' || told.value.state === 'Aborted')
      return { kind: 'unknown', code: 'close-not-taken' };
    return this.#staged(job);
  }

  /** A job that has no data for certain, or perhaps only part of it, must never begin. */
  async #abandon(job: string): Promise<BatchOutcome> {
    const told = await this.#parts.api.setState(job, 'Aborted');
    if (told.kind !== 'ok') return unknown('abort', told);
    return told.value.state === 'Aborted'
      ? notApplied('job-abandoned')
      : { kind: 'unknown', code: 'abort-not-taken' };
  }

  #staged(job: string): BatchOutcome {
    return {
      kind: 'staged',
      jobIds: [job],
      receipt: { job },
      pollAfterMs: this.#parts.options.poll_every_ms,
    };
  }
}

const LATE: Called<never> = { kind: 'later', code: 'too-slow', afterMs: null };

/** A call that holds no member's data, and is refused, is refused for what the settings say. */
function aboutSettings(trouble: Trouble): Trouble {
  return trouble.kind === 'refused' ? { ...trouble, kind: 'denied' } : trouble;
}

/** Of a step before the word: nothing of the request has been applied, and the trouble says what to do about it. */
function nothingYet(trouble: Trouble): BatchOutcome {
  switch (trouble.kind) {
    case 'later':
      return { kind: 'not-applied', code: trouble.code, retryAfterMs: trouble.afterMs, tooLarge: false };
    case 'not-sent':
    case 'unsure':
      return notApplied(trouble.code);
    case 'denied':
      return { kind: 'misconfigured', code: trouble.code, reason: trouble.reason };
    case 'refused':
      return { kind: 'refused', code: trouble.code, reason: trouble.reason };
  }
}

function settledBeforehand(targets: readonly Target[]): BatchOutcome {
  const outcomes = targets.flatMap((target) => (typeof target === 'string' ? [] : [beforehand(target)]));
  return { kind: 'settled', outcomes, receipt: { job: null } };
}

function notApplied(code: string): BatchOutcome {
  return { kind: 'not-applied', code, retryAfterMs: null, tooLarge: false };
}

/** A job that is not known will not be known later; whatever else got in the way may have passed by then. */
function unknown(step: string, trouble: Trouble): BatchOutcome {
  const code = `${step}-${trouble.code}`;
  const lasting = trouble.kind === 'refused' && trouble.status === 404;
  return lasting ? { kind: 'unknown', code } : { kind: 'unknown', code, unanswered: true };
}
