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
import type { Asynchronous, ByList, ResultPaging } from './job-options.ts';
import { at, field } from './json-pointer.ts';
import type { HttpOptions } from './options.ts';
import { firstPage, nextPage } from './result-pages.ts';
import { attributeRows, type ListedRow, listRows, reasonText } from './rows.ts';
import { fillPath } from './url.ts';

/** What was staged: `operations` is `null` for a step, which has no rows. */
export interface StagedWork {
  readonly jobIds: readonly string[];
  readonly receipt: Receipt;
  readonly operations: readonly Operation[] | null;
}

/** An answer about a job that could be read. */
interface Read {
  readonly kind: 'read';
  /** Below the base URL: what was asked for. */
  readonly path: string;
  readonly reply: Reply;
  readonly content: ReplyContent;
}

/** The last answer about a job that has ended. */
interface AskedJob extends Read {
  readonly id: string;
  readonly failed: boolean;
}

interface Told extends Read {
  /** From all pages; `null`: nothing that could be attributed. */
  readonly rows: readonly ListedRow[] | null;
}

interface EndedJob extends Told {
  readonly failed: boolean;
}

/** Of an operation that a failed job names, and has no outcome for. */
const UNTOUCHED: OperationOutcome = { kind: 'not-applied', code: 'job-failed' };

/** Under a state that says "failed, nothing applied" an accepted row is a contradiction. */
function claims({ rows }: EndedJob): boolean {
  return rows?.some(({ outcome }) => outcome?.kind === 'accepted') === true;
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

  /**
   * Asks what each job has come to, and reads results where none of them runs any more: what one of them says proves nothing
   * of what another has applied.
   */
  async poll(work: StagedWork): Promise<PollOutcome> {
    const asked: AskedJob[] = [];
    let missing: PollOutcome | null = null;
    for (const id of work.jobIds) {
      const read = await this.#askState(id, work);
      if (read.kind === 'missing') missing ??= read;
      else if (read.kind === 'read') asked.push(read);
      else return read;
    }
    if (missing !== null) return missing;
    const ended: EndedJob[] = [];
    for (const job of asked) {
      const told = await this.#results(job, work);
      if (told.kind !== 'read') return told;
      ended.push(told);
    }
    return ended.some(({ failed }) => failed) ? this.#settleFailed(ended, work) : this.#settle(ended, work);
  }

  /** `read`: the job has ended, one way or the other. */
  async #askState(id: string, work: StagedWork): Promise<PollOutcome | AskedJob> {
    const asked = await this.#ask(this.#jobs.poll, id, work, this.#jobs.results.request === undefined);
    if (asked.kind !== 'read') return asked;
    const state = at(asked.content.kind === 'json' ? asked.content.value : undefined, this.#jobs.state.at);
    const { running, done, failed } = this.#jobs.state;
    const is = (values: readonly unknown[]) => values.includes(state);
    if (is(running)) return this.#wait(work, asked.reply);
    if (is(done) || is(failed)) return { ...asked, id, failed: !is(done) };
    return { kind: 'unknown', code: 'job-state-not-understood' };
  }

  /** A job that has failed as a whole may yet tell, in the answer of the poll, what became of each operation. */
  async #results(job: AskedJob, work: StagedWork): Promise<PollOutcome | EndedJob> {
    const { request } = this.#jobs.results;
    const first = request === undefined || job.failed ? job : await this.#ask(request, job.id, work, true);
    if (first.kind !== 'read') return first;
    const told = await this.#withRows(first, work);
    return told.kind === 'read' ? { ...told, failed: job.failed } : told;
  }

  /** Some of the jobs have failed, or the only one. */
  #settleFailed(ended: readonly EndedJob[], work: StagedWork): PollOutcome {
    const asWhole = ended.every(({ failed }) => failed);
    const believed = ended.map((job) => this.#believed(job, asWhole));
    const settled =
      'per_request' in this.#jobs.results || work.operations === null ? null : this.#settle(believed, work);
    if (settled?.kind === 'settled') return settled;
    const [first] = ended;
    const refused = asWhole && this.#jobs.failed === 'not_applied' && !ended.some(claims);
    // Which members a failed job took, and did not tell of, nobody knows: another one may have applied them.
    if (first === undefined || !refused) return { kind: 'missing', code: 'job-failed' };
    return { kind: 'refused', code: 'job-failed', reason: reasonOf(first.reply, this.#client) };
  }

  /**
   * What the rows of a job say. Where failed jobs have applied nothing, on the user's word, a row without a yes or no was not applied; a
   * row that claims success contradicts that. Where all have failed that word is about the request `asWhole`, which can never succeed.
   */
  #believed(job: EndedJob, asWhole: boolean): EndedJob {
    const rows = job.failed ? (job.rows ?? []) : job.rows;
    if (!job.failed || asWhole || this.#jobs.failed !== 'not_applied' || claims(job)) return { ...job, rows };
    return { ...job, rows: rows?.map((row) => ({ ...row, outcome: row.outcome ?? UNTOUCHED })) ?? null };
  }

  #wait({ jobIds, receipt }: StagedWork, reply: Reply): PollOutcome {
    const wait = retryAfterMs(reply.headers['retry-after'], this.#now());
    return { kind: 'staged', jobIds, receipt, ...(wait === null ? {} : { pollAfterMs: wait }) };
  }

  async #ask(read: ApiRead, job: string, work: StagedWork, holdsRows: boolean): Promise<PollOutcome | Read> {
    const path = fillPath(read.path, { job });
    if (path === null) return { kind: 'missing', code: 'job-not-addressable' };
    return this.#read(holdsRows ? firstPage(path, this.#paging) : path, read.headers, work);
  }

  async #read(path: string, headers: ApiRead['headers'], work: StagedWork): Promise<PollOutcome | Read> {
    const result = await this.#client.send(getRequest(path, headers));
    if (result.kind !== 'reply' || result.status !== 200) return this.#unanswered(result, work);
    const content = readContent(result);
    if (content.kind === 'json') return { kind: 'read', path, reply: result, content };
    return { kind: 'unknown', code: content.kind === 'unreadable' ? content.code : 'job-not-understood' };
  }

  get #paging(): ResultPaging | undefined {
    const { results } = this.#jobs;
    return 'pages' in results ? results.pages : undefined;
  }

  /**
   * The rows of every page, each held only until its rows are read. A page that does not come leaves the job as it was, and all of
   * them are read anew; where more rows are told of than were sent, no further page could mend that.
   */
  async #withRows(first: Read, work: StagedWork): Promise<PollOutcome | Told> {
    const { request } = this.#jobs.results;
    const { headers } = request ?? this.#jobs.poll;
    const told = work.operations === null ? null : this.#listed(first.content);
    if (told === null) return { ...first, rows: null };
    const rows = [...told];
    const paths = [first.path];
    let page: Read = first;
    for (let lastRows = rows.length; rows.length <= (work.operations?.length ?? 0); ) {
      const read = { paths, rows: rows.length, lastRows };
      const next = nextPage(this.#client.baseUrl, page.content, this.#paging, read);
      if (next.kind === 'last') break;
      if (next.kind === 'unusable') return { kind: 'unknown', code: next.code };
      const answer = await this.#read(next.path, headers, work);
      // A page that is gone is none of a job that is not known.
      if (answer.kind === 'missing') return { kind: 'unknown', code: answer.code };
      if (answer.kind !== 'read') return answer;
      const listed = this.#listed(answer.content);
      if (listed === null) return { kind: 'unknown', code: 'reply-lacks-ids' };
      rows.push(...listed);
      paths.push(next.path);
      page = answer;
      lastRows = listed.length;
    }
    return { ...first, rows };
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

  #settle(done: readonly Told[], { operations, jobIds }: StagedWork): PollOutcome {
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
    for (const { rows } of done) {
      if (rows === null) return { kind: 'unknown', code: 'reply-lacks-ids' };
      listed.push(...rows);
    }
    const match = 'per_row' in results ? results.per_row.match : results.by_list.match;
    const rows = attributeRows(listed, match, operations, this.#options.identity_folding);
    return rows.kind === 'unknown' ? rows : { kind: 'settled', outcomes: rows.outcomes, receipt };
  }

  #listed(content: ReplyContent): readonly ListedRow[] | null {
    const { results } = this.#jobs;
    if (content.kind !== 'json') return null;
    const words = (text: string) => this.#client.redactor.clean(text, REASON_LIMIT);
    if ('per_row' in results) return listRows(content.value, results.per_row, words);
    return 'by_list' in results ? listedApart(content.value, results.by_list, words) : null;
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
