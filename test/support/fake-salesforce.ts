/**
 * A fake Salesforce org: a real server on loopback that follows the public documentation of Bulk API 2.0 (ingest jobs), of
 * SOQL reads by external ID, and of object descriptions, for one object; and misbehaves on demand.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { FakeOrg, type JobEnd, type OrgJob } from './fake-salesforce-org.ts';

/** Calls by what they are for. */
export type Step =
  | 'token'
  | 'create'
  | 'upload'
  | 'close'
  | 'abort'
  | 'job'
  | 'successfulResults'
  | 'failedResults'
  | 'unprocessedrecords'
  | 'query'
  | 'describe';

export interface Fault {
  readonly step: Step;
  /** Whether the call takes effect all the same. */
  readonly applied: boolean;
  readonly answer:
    | 'lost'
    | 'never'
    | {
        readonly status: number;
        readonly headers?: Record<string, string>;
        readonly errorCode?: string;
        readonly body?: string;
      };
}

interface Call {
  readonly step: Step;
  readonly path: string;
  readonly body: string;
  readonly job: string;
}

export interface FakeSalesforceSettings {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly refreshToken?: string;
}

const BASE = '/services/data/v62.0';

export class FakeSalesforce {
  readonly org = new FakeOrg();
  /** Every call in its order. */
  readonly calls: Call[] = [];
  readonly faults: Fault[] = [];
  /** How the next jobs go. */
  readonly ends: JobEnd[] = [];
  /** What a description says otherwise than usual. */
  describe: { object?: object; key?: object } = {};
  readonly #settings: FakeSalesforceSettings;
  readonly #server: Server;
  readonly #tokens = new Set<string>();
  #tokenCount = 0;

  private constructor(settings: FakeSalesforceSettings) {
    this.#settings = settings;
    this.#server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing));
  }

  static async start(settings: FakeSalesforceSettings): Promise<FakeSalesforce> {
    const fake = new FakeSalesforce(settings);
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The token given last. */
  get token(): string {
    return [...this.#tokens].at(-1) ?? '';
  }

  get steps(): readonly Step[] {
    return this.calls.map(({ step }) => step).filter((step) => step !== 'token');
  }

  fault(step: Step, answer: Fault['answer'], applied = false): void {
    this.faults.push({ step, answer, applied });
  }

  revokeTokens(): void {
    this.#tokens.clear();
  }

  reset(): void {
    for (const list of [this.calls, this.faults, this.ends]) list.length = 0;
    this.describe = {};
    this.org.reset();
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
    } catch {
      return; // the client went away
    }
    const { method = '', url = '', headers } = incoming;
    const call = callOf(method, url, Buffer.concat(chunks).toString('utf8'));
    if (call === null) return send(outgoing, NOT_FOUND);
    this.calls.push(call);
    if (call.step === 'token') return send(outgoing, this.#token(call.body));
    const token = String(headers.authorization).replace(/^Bearer /, '');
    if (this.#tokens.has(token)) return this.#answer(call, outgoing);
    send(outgoing, errors(401, 'INVALID_SESSION_ID', 'Session expired or invalid'));
  }

  async #answer(call: Call, outgoing: ServerResponse): Promise<void> {
    const index = this.faults.findIndex(({ step }) => step === call.step);
    const [fault] = index < 0 ? [] : this.faults.splice(index, 1);
    const right = fault === undefined || fault.applied ? this.#do(call) : null;
    if (fault === undefined) return send(outgoing, right ?? NOT_FOUND);
    const { answer } = fault;
    if (answer === 'never') return;
    if (answer === 'lost') {
      outgoing.socket?.resetAndDestroy();
      return;
    }
    const { status, headers = {}, errorCode = 'UNKNOWN_EXCEPTION', body } = answer;
    send(outgoing, {
      ...errors(status, errorCode, 'said so by a test'),
      ...(body === undefined ? {} : { body }),
      headers,
    });
  }

  /** Does what is asked. */
  #do({ step, job: id, body, path }: Call): Response {
    if (step === 'create') return json(200, this.org.create(JSON.parse(body), this.ends.shift() ?? {}));
    if (step === 'query') return this.#query(path);
    if (step === 'describe') return json(200, this.org.describe(this.describe));
    const job = this.org.jobs.get(id);
    if (job === undefined) return NOT_FOUND;
    switch (step) {
      case 'upload':
        if (job.state !== 'Open') return errors(400, 'INVALIDJOBSTATE', 'The job is not open');
        job.data = body;
        return { status: 201, body: '', headers: {} };
      case 'close':
      case 'abort':
        return this.#setState(job, step);
      case 'job':
        return json(200, this.org.info(job));
      default:
        return {
          status: 200,
          body: this.org.table(job, step as Table),
          headers: { 'content-type': 'text/csv' },
        };
    }
  }

  #setState(job: OrgJob, step: 'close' | 'abort'): Response {
    const allowed = step === 'close' ? job.state === 'Open' : !['JobComplete', 'Failed'].includes(job.state);
    if (!allowed) return errors(400, 'INVALIDJOBSTATE', 'The job cannot go there');
    job.state = step === 'close' ? 'UploadComplete' : 'Aborted';
    return json(200, this.org.info(job, false));
  }

  #query(path: string): Response {
    const soql = new URL(path, this.url).searchParams.get('q') ?? '';
    const result = this.org.query(soql, path.startsWith(`${BASE}/queryAll`));
    return result === null ? errors(400, 'MALFORMED_QUERY', 'unexpected token') : json(200, result);
  }

  #token(body: string): Response {
    const form = new URLSearchParams(body);
    const { clientId, clientSecret, refreshToken } = this.#settings;
    const known = form.get('client_id') === clientId && form.get('client_secret') === clientSecret;
    const grant = form.get('grant_type');
    const granted =
      grant === 'client_credentials' ||
      (grant === 'refresh_token' && refreshToken !== undefined && form.get('refresh_token') === refreshToken);
    if (!known || !granted) return json(400, { error: 'invalid_client' });
    this.#tokenCount += 1;
    const token = `00D-granted!token.${this.#tokenCount}`;
    this.#tokens.add(token);
    return json(200, { access_token: token, token_type: 'Bearer', instance_url: this.url });
  }
}

type Table = 'successfulResults' | 'failedResults' | 'unprocessedrecords';

interface Response {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

function callOf(method: string, path: string, body: string): Call | null {
  const made = (step: Step, job = '') => ({ step, path, body, job });
  if (path === '/services/oauth2/token') return made('token');
  if (path.startsWith(`${BASE}/query`)) return made('query');
  if (path.endsWith('/describe')) return made('describe');
  const [, job, part] = /\/jobs\/ingest(?:\/(\w+)(?:\/(\w+))?)?$/.exec(path) ?? [];
  if (method === 'POST') return made('create');
  if (job === undefined) return null;
  if (method === 'PUT') return made('upload', job);
  if (method === 'PATCH') return made(body.includes('Aborted') ? 'abort' : 'close', job);
  return made((part ?? 'job') as Step, job);
}

function json(status: number, value: unknown): Response {
  return { status, body: JSON.stringify(value), headers: {} };
}

function errors(status: number, errorCode: string, message: string): Response {
  return json(status, [{ errorCode, message }]);
}

const NOT_FOUND = errors(404, 'NOT_FOUND', 'The requested resource does not exist');

function send(outgoing: ServerResponse, { status, body, headers }: Response): void {
  outgoing.writeHead(status, { 'content-type': 'application/json;charset=UTF-8', ...headers }).end(body);
}
