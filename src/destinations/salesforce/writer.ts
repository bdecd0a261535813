/** The writer of one object: requests become ingest jobs, and jobs are asked about. There is no session to open or to end. */

import type {
  BatchOutcome,
  BatchRequest,
  EmptyCheck,
  OperationOutcome,
  PollOutcome,
  PreflightProblem,
  Receipt,
  StepOutcome,
  Writer,
  WriterContext,
} from '../port.ts';
import { NO_CALL, SessionlessWriter } from '../web-sessionless.ts';
import { type Called, type Job, SalesforceApi, type Trouble } from './api.ts';
import { type SalesforceConnection, stepsBudgetMs } from './connection.ts';
import { Ingest } from './ingest.ts';
import type { SalesforceOptions } from './options.ts';
import { preflight } from './preflight.ts';
import { type Progress, readProgress } from './progress.ts';
import { attribute, type Tables } from './results.ts';

export class SalesforceWriter extends SessionlessWriter implements Writer {
  readonly #api: SalesforceApi;
  readonly #options: SalesforceOptions;
  readonly #context: WriterContext;
  readonly #ingest: Ingest;

  constructor(connection: SalesforceConnection, options: SalesforceOptions, context: WriterContext) {
    super();
    this.#api = new SalesforceApi(connection, context);
    this.#options = options;
    this.#context = context;
    const budgetMs = stepsBudgetMs(connection);
    this.#ingest = new Ingest({ api: this.#api, options, context, budgetMs });
  }

  preflight(): Promise<readonly PreflightProblem[]> {
    return preflight(this.#api, this.#options, this.#context.fields);
  }

  /** A member is a record that has the external ID: records without one belong to others, and are not looked at. */
  async checkEmpty(): Promise<EmptyCheck> {
    const { object, external_id } = this.#options;
    const query = `SELECT COUNT() FROM ${object} WHERE ${external_id} != null`;
    const counted = await this.#api.read(`/query?q=${encodeURIComponent(query)}`);
    if (counted.kind !== 'ok') {
      const lasting = counted.kind === 'denied' || counted.kind === 'refused';
      return { kind: lasting ? 'misconfigured' : 'failed', code: counted.code };
    }
    const { value } = counted;
    const size = typeof value === 'object' && value !== null && 'totalSize' in value ? value.totalSize : null;
    if (typeof size !== 'number') return { kind: 'misconfigured', code: 'query-not-understood' };
    return { kind: size === 0 ? 'empty' : 'not-empty' };
  }

  finish(): Promise<StepOutcome> {
    return Promise.resolve(NO_CALL);
  }

  reconcileFinish(): Promise<StepOutcome> {
    return Promise.resolve(NO_CALL);
  }

  upsert(request: BatchRequest): Promise<BatchOutcome> {
    return this.#ingest.upsert(request);
  }

  remove(request: BatchRequest): Promise<BatchOutcome> {
    return this.#ingest.remove(request);
  }

  reconcileBatch(
    _request: BatchRequest,
    _receipt: Receipt | null,
    progress?: string | null,
  ): Promise<BatchOutcome> {
    return this.#ingest.reconcile(readProgress(progress));
  }

  async poll(
    request: BatchRequest,
    jobIds: readonly string[],
    receipt: Receipt,
    progress?: string | null,
  ): Promise<PollOutcome> {
    const [id] = jobIds;
    const saved = readProgress(progress);
    if (id === undefined || saved === null) return { kind: 'missing', code: 'progress-missing' };
    const asked = await this.#api.job(id);
    if (asked.kind !== 'ok') return this.#unanswered(asked, jobIds, receipt);
    const job = asked.value;
    switch (job.state) {
      case 'Open':
        return { kind: 'unknown', code: 'job-open' };
      case 'UploadComplete':
      case 'InProgress':
        return { kind: 'staged', jobIds, receipt };
      case 'JobComplete':
      case 'Failed':
      case 'Aborted':
        return this.#ended(request, job, saved, (trouble) => this.#unanswered(trouble, jobIds, receipt));
    }
  }

  close(): Promise<void> {
    this.#api.close();
    return Promise.resolve();
  }

  async #ended(
    request: BatchRequest,
    job: Job,
    { targets }: Progress,
    unanswered: (trouble: Trouble) => PollOutcome,
  ): Promise<PollOutcome> {
    const tables = await this.#tables(job);
    if (tables.kind !== 'ok') return unanswered(tables);
    const complete = job.state === 'JobComplete';
    const words = (text: string) => this.#api.clean(text);
    const sent = { operations: request.operations, targets };
    const aborted = job.state === 'Aborted';
    const told = attribute(tables.value, sent, this.#options, words, unprocessed(aborted, job.words));
    const code = aborted ? 'job-aborted' : 'job-failed';
    // A job that has ended badly says no more than it says now; of a complete one the tables may still be on their way.
    if (told.kind === 'unknown') return complete ? told : { kind: 'missing', code: `${code}:${told.code}` };
    // Nothing was applied, and the data of one member may be what the org could not read.
    if (told.unprocessed === request.operations.length)
      return { kind: 'refused', code, reason: job.words, ...(aborted ? {} : { divisible: true }) };
    return { kind: 'settled', outcomes: told.outcomes, receipt: { job: job.id, state: job.state } };
  }

  async #tables({ id, state }: Job): Promise<Called<Tables>> {
    const successful = await this.#api.results(id, 'successfulResults');
    if (successful.kind !== 'ok') return successful;
    const failed = await this.#api.results(id, 'failedResults');
    if (failed.kind !== 'ok') return failed;
    const rest = state === 'JobComplete' ? null : await this.#api.results(id, 'unprocessedrecords');
    if (rest !== null && rest.kind !== 'ok') return rest;
    const unprocessed = rest === null ? null : rest.value;
    return { kind: 'ok', value: { successful: successful.value, failed: failed.value, unprocessed } };
  }

  /** No answer about the job: it is as it was. A job that is not known (after seven days none is) proves nothing either. */
  #unanswered(trouble: Trouble, jobIds: readonly string[], receipt: Receipt): PollOutcome {
    const code = `poll-${trouble.code}`;
    if (trouble.kind === 'refused' && (trouble.status === 404 || trouble.status === 410))
      return { kind: 'missing', code };
    if (trouble.kind === 'later' && trouble.afterMs !== null)
      return { kind: 'staged', jobIds, receipt, pollAfterMs: trouble.afterMs };
    return { kind: 'unknown', code };
  }
}

/**
 * Rows that the job has not looked at were not applied: they go again. But not where somebody has ended the job in the org: to begin
 * another one would be against their will.
 */
function unprocessed(aborted: boolean, reason: string): OperationOutcome {
  const code = 'row-unprocessed';
  return aborted ? { kind: 'rejected', code, reason } : { kind: 'not-applied', code };
}
