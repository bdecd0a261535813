/**
 * A fake asynchronous API: a real server on loopback that answers writes with a job, works on it while it is polled, and
 * misbehaves on demand. A job takes effect when it ends, so that a test can tell staged work from done work.
 *
 *   POST, DELETE /members      starts a job: 202 {"job_id": …}
 *   GET /jobs/<id>             {"state": …, "results": […]}; results stand in `/jobs/<id>/results` where `resultsApart`, and on
 *                              pages of `pageRows` rows where that is set: {"next": <link>, "cursor": …}, or `?offset=`
 *   GET /keys/<key>            {"job_id": …} or 404; GET /search/<key>: {"jobs": [{"job_id": …}, …]}
 *   GET /members/<id>          {"member": {…}} or 404
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Row = Readonly<Record<string, unknown>>;

export interface Job {
  readonly id: string;
  readonly key: string | undefined;
  readonly action: 'upsert' | 'remove';
  readonly rows: readonly Row[];
  /** Polls that still find it running. */
  polls: number;
  /** What it says once it has ended. */
  readonly end: JobEnd;
  ended: boolean;
}

export interface JobEnd {
  readonly state?: string;
  /** Positions of rows that are not applied. */
  readonly reject?: readonly number[];
  /** Positions of rows that the results leave out, or tell of twice; ids of strangers in them. */
  readonly missing?: readonly number[];
  readonly repeat?: readonly number[];
  readonly foreign?: readonly string[];
  readonly shuffle?: boolean;
  /** What takes the place of the results. */
  readonly results?: unknown;
}

/** An answer instead of the right one; `lost`: the connection is reset, `never`: nothing comes. */
export type Answer =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | 'lost'
  | 'never';

export class FakeJobs {
  readonly jobs: Job[] = [];
  readonly members = new Map<string, Row>();
  readonly requests: { readonly method: string; readonly path: string; readonly body: string }[] = [];
  /** What the next writes meet; `applied`: the job is started all the same. */
  readonly writes: { readonly answer: Answer; readonly applied: boolean }[] = [];
  /** What the next reads of jobs, results and keys meet. */
  readonly reads: Answer[] = [];
  /** How the next jobs end. */
  readonly ends: JobEnd[] = [];
  /** Polls that find a new job running; those of the next jobs, one each. */
  polls = 0;
  readonly slow: number[] = [];
  /** Of the first answer and of polls that find a job running. */
  retryAfter: string | null = null;
  resultsApart = false;
  /** Rows of a page of results; `null`: one page has them all. */
  pageRows: number | null = null;
  /** What a page names as the next one in place of that, by the number of the first row that it would have. */
  nextPage: ((from: number) => unknown) | null = null;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing));
  }

  static async start(): Promise<FakeJobs> {
    const fake = new FakeJobs();
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  reset(): void {
    for (const list of [this.jobs, this.requests, this.writes, this.reads, this.ends, this.slow])
      list.length = 0;
    this.members.clear();
    this.polls = 0;
    this.retryAfter = null;
    this.resultsApart = false;
    this.pageRows = null;
    this.nextPage = null;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    const { method = '', url = '', headers } = incoming;
    this.requests.push({ method, path: url, body });
    if (method === 'GET') return this.#read(decodeURIComponent(url), outgoing);
    const bad = this.writes.shift();
    const started =
      bad === undefined || bad.applied ? this.#begin(method, body, headers['idempotency-key']) : null;
    if (bad !== undefined) return misanswer(bad.answer, outgoing);
    this.#json(outgoing, 202, { job_id: started?.id }, true);
  }

  #begin(method: string, body: string, key: string | string[] | undefined): Job {
    const job: Job = {
      id: `job-${this.jobs.length + 1}`,
      key: typeof key === 'string' ? key : undefined,
      action: method === 'DELETE' ? 'remove' : 'upsert',
      rows: JSON.parse(body) as readonly Row[],
      polls: this.slow.shift() ?? this.polls,
      end: this.ends.shift() ?? {},
      ended: false,
    };
    this.jobs.push(job);
    return job;
  }

  async #read(path: string, outgoing: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(path, this.url);
    const [, kind = '', name = '', part] = pathname.split('/');
    const bad = kind === 'members' ? undefined : this.reads.shift();
    if (bad !== undefined) return misanswer(bad, outgoing);
    if (kind === 'search') {
      const jobs = this.jobs.filter(({ key }) => key === name).map(({ id }) => ({ job_id: id }));
      return this.#json(outgoing, 200, { jobs });
    }
    if (kind === 'members') {
      const member = this.members.get(name);
      return this.#json(outgoing, member === undefined ? 404 : 200, { member });
    }
    const job = this.jobs.find((one) => (kind === 'keys' ? one.key === name : one.id === name));
    if (job === undefined) return this.#json(outgoing, 404, { error: 'no such thing' });
    if (kind === 'keys') return this.#json(outgoing, 200, { job_id: job.id });
    await this.#report(job, part === 'results', searchParams, outgoing);
  }

  async #report(job: Job, results: boolean, query: URLSearchParams, outgoing: ServerResponse): Promise<void> {
    if (job.polls > 0) {
      job.polls -= 1;
      return this.#json(outgoing, 200, { state: 'processing' }, true);
    }
    const rows = this.#end(job);
    const state = job.end.state ?? 'finished';
    if (this.resultsApart && !results) return this.#json(outgoing, 200, { state });
    const page = this.#page(rows, query, job.id);
    this.#json(outgoing, 200, this.resultsApart ? page : { state, ...page });
  }

  #page(rows: unknown, query: URLSearchParams, job: string): object {
    if (this.pageRows === null || !Array.isArray(rows)) return { results: rows };
    const from = Number(query.get('cursor') ?? query.get('offset') ?? 0);
    const end = from + Number(query.get('rows') ?? this.pageRows);
    const path = this.resultsApart ? `/jobs/${job}/results` : `/jobs/${job}`;
    const link = this.nextPage?.(end) ?? `${this.url}${path}?cursor=${end}`;
    const more = end < rows.length ? { next: link, cursor: end } : { next: null };
    return { results: rows.slice(from, end), ...more };
  }

  /** Takes effect, the first time. */
  #end(job: Job): unknown {
    const { reject = [], missing = [], repeat = [], foreign = [], shuffle = false, results } = job.end;
    const rows = job.rows.map((row, index) => {
      const id = String(row.email_sha256);
      if (reject.includes(index)) return { id, status: 'invalid', reason: `row ${index + 1} is not valid` };
      if (!job.ended && job.action === 'upsert') this.members.set(id, row);
      if (!job.ended && job.action === 'remove') this.members.delete(id);
      return { id, status: 'ok' };
    });
    job.ended = true;
    const told = rows.flatMap((row, i) =>
      missing.includes(i) ? [] : repeat.includes(i) ? [row, row] : [row],
    );
    const all = [...told, ...foreign.map((id) => ({ id, status: 'ok' }))];
    return results ?? (shuffle ? all.reverse() : all);
  }

  #json(outgoing: ServerResponse, status: number, value: unknown, later = false): void {
    const wait = later && this.retryAfter !== null ? { 'retry-after': this.retryAfter } : {};
    outgoing.writeHead(status, { 'content-type': 'application/json', ...wait }).end(JSON.stringify(value));
  }
}

function misanswer(answer: Answer, outgoing: ServerResponse): void {
  if (answer === 'lost') outgoing.socket?.resetAndDestroy();
  else if (answer !== 'never')
    outgoing
      .writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
      .end(answer.body ?? '{}');
}
