/**
 * Polls of staged jobs (design.md section 6, rule 5). Only an ended job whose results tell of each operation settles its
 * batch; whatever else a poll brings proves nothing, and begins nothing.
 */

import type { Operation, OperationOutcome, PollOutcome, Receipt } from '../port.ts';
import type { ApiClient, ApiRequest, ApiResult } from '../web-client.ts';
import { type ReplyContent, readContent } from '../web-reply.ts';
import { retryAfterMs } from '../web-retry-after.ts';
import type { Reply } from '../web-transport.ts';
import { meets, REASON_LIMIT, reasonOf, receiptOf } from './answer.ts';
import type { Asynchronous, ByList, JobResults } from './job-options.ts';
import { at, field } from './json-pointer.ts';
import type { HttpOptions } from './options.ts';
import { attributeRows, type ListedRow, listRows, reasonText } from './rows.ts';
import { fillPath } from './url.ts';

/** What was staged: `operations` is `null` for a step, which has no rows. */
export interface StagedWork {
  readonly jobIds: readonly string[];
  readonly receipt: Receipt;
  readonly operations: readonly Operation[] | null;
}

/** A job that has ended well, with the answer that holds its results. */
interface DoneJob {
  readonly reply: Reply;
  readonly content: ReplyContent;
}

export class JobReader {
  readonly #client: ApiClient;
  readonly #options: HttpOptions;
  readonly #jobs: Asynchronous;
  readonly #now: () => number;

  constructor(client: ApiClient, options: HttpOptions, jobs: Asynchronous, now: () => number) {
    this.#client = client;
    this.#options = options;
    this.#jobs = jobs;
    this.#now = now;
  }

  /** Asks for each job of a batch; the first that has not ended well answers for the batch. */
  async poll(work: StagedWork): Promise<PollOutcome> {
    const done: DoneJob[] = [];
    for (const job of work.jobIds) {
      const asked = await this.#read(this.#jobs.poll, job, work);
      if (asked.kind !== 'read') return asked;
      const state = at(asked.content.kind === 'json' ? asked.content.value : undefined, this.#jobs.state.at);
      const ended = this.#hasEnded(state, asked, work);
      if (ended !== null) return ended;
      const { request } = this.#jobs.results;
      const results = request === undefined ? asked : await this.#read(request, job, work);
      if (results.kind !== 'read') return results;
      done.push(results);
    }
    return this.#settle(done, work);
  }

  /** `null`: the job is done, and its results are to be read. */
  #hasEnded(state: unknown, { reply, content }: DoneJob, work: StagedWork): PollOutcome | null {
    const { running, done, failed } = this.#jobs.state;
    const is = (values: readonly unknown[]) => values.includes(state);
    if (is(done)) return null;
    if (is(running)) return this.#wait(work, reply);
    if (!is(failed)) return { kind: 'unknown', code: 'job-state-not-understood' };
    // Failed as a whole, and yet it may tell of each operation what became of it.
    const told = work.jobIds.length === 1 ? this.#settle([{ reply, content }], work) : null;
    if (told?.kind === 'settled') return told;
    if (this.#jobs.failed === 'unknown' || this.#claimsAcceptance(content))
      return { kind: 'missing', code: 'job-failed' };
    return { kind: 'refused', code: 'job-failed', reason: reasonOf(reply, this.#client) };
  }

  #wait({ jobIds, receipt }: StagedWork, reply: Reply): PollOutcome {
    const wait = retryAfterMs(reply.headers['retry-after'], this.#now());
    return { kind: 'staged', jobIds, receipt, ...(wait === null ? {} : { pollAfterMs: wait }) };
  }

  async #read(
    read: ApiRead,
    job: string,
    work: StagedWork,
  ): Promise<PollOutcome | ({ readonly kind: 'read' } & DoneJob)> {
    const path = fillPath(read.path, { job });
    if (path === null) return { kind: 'missing', code: 'job-not-addressable' };
    const result = await this.#client.send(getRequest(path, read.headers));
    if (result.kind !== 'reply' || result.status !== 200) return this.#unanswered(result, work);
    const content = readContent(result);
    if (content.kind === 'json') return { kind: 'read', reply: result, content };
    return { kind: 'unknown', code: content.kind === 'unreadable' ? content.code : 'job-not-understood' };
  }

  /** No answer about the job: it is as it was. A job that is not known proves nothing either, and will not come back. */
  #unanswered(result: ApiResult, work: StagedWork): PollOutcome {
    if (result.kind !== 'reply') return { kind: 'unknown', code: `poll-${result.code}` };
    const code = `poll-http-${result.status}`;
    const isPage = readContent(result).kind === 'unreadable';
    if ((result.status === 404 || result.status === 410) && !isPage) return { kind: 'missing', code };
    const busy = result.status === 429 || result.status === 503;
    const later = busy ? retryAfterMs(result.headers['retry-after'], this.#now()) : null;
    return later === null ? { kind: 'unknown', code } : this.#wait(work, result);
  }

  #settle(done: readonly DoneJob[], { operations, jobIds }: StagedWork): PollOutcome {
    const { results } = this.#jobs;
    const [first] = done;
    if (first === undefined) return { kind: 'missing', code: 'job-not-addressable' };
    const receipt = receiptOf(first.reply, first.content, this.#client, { jobIds });
    if (operations === null) return { kind: 'accepted', receipt };
    if ('per_request' in results) {
      const agrees = done.length === 1 && meets(first.content, results.per_request, operations.length);
      return agrees ? { kind: 'accepted', receipt } : { kind: 'unknown', code: 'reply-not-understood' };
    }
    const listed: ListedRow[] = [];
    for (const { content } of done) {
      const rows = this.#listed(content, results);
      if (rows === null) return { kind: 'unknown', code: 'reply-lacks-ids' };
      listed.push(...rows);
    }
    const match = 'per_row' in results ? results.per_row.match : results.by_list.match;
    const rows = attributeRows(listed, match, operations, this.#options.identity_folding);
    return rows.kind === 'unknown' ? rows : { kind: 'settled', outcomes: rows.outcomes, receipt };
  }

  #listed(content: ReplyContent, results: JobResults): readonly ListedRow[] | null {
    if (content.kind !== 'json') return null;
    const words = (text: string) => this.#client.redactor.clean(text, REASON_LIMIT);
    if ('per_row' in results) return listRows(content.value, results.per_row, words);
    return 'by_list' in results ? listedApart(content.value, results.by_list, words) : null;
  }

  /** Under a state that says "failed, nothing applied" an accepted row is a contradiction. */
  #claimsAcceptance(content: ReplyContent): boolean {
    const rows = this.#listed(content, this.#jobs.results);
    return rows?.some(({ outcome }) => outcome?.kind === 'accepted') === true;
  }
}

interface ApiRead {
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
}

export function getRequest(path: string, headers: ApiRead['headers']): ApiRequest {
  return { method: 'GET', path, headers, contentType: null, body: null };
}

/** Accepted and rejected rows in a list each; `null` where one of the lists is not there. */
function listedApart(
  document: unknown,
  { accepted, rejected }: ByList,
  words: (text: string) => string,
): readonly ListedRow[] | null {
  const [yes, no] = [at(document, accepted.list), at(document, rejected.list)];
  if (!Array.isArray(yes) || !Array.isArray(no)) return null;
  const refusal = (row: unknown): OperationOutcome => ({
    kind: 'rejected',
    code: 'row-rejected',
    reason: words(reasonText(row, rejected.reason, '')),
  });
  return [
    ...yes.map((row: unknown): ListedRow => ({ id: field(row, accepted.id), outcome: { kind: 'accepted' } })),
    ...no.map((row: unknown): ListedRow => ({ id: field(row, rejected.id), outcome: refusal(row) })),
  ];
}
