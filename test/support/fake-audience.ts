/**
 * A fake audience API: a real server on loopback that keeps members by id, remembers each request byte for byte, and
 * misbehaves on demand. Faults are plain JSON, so that they can be set in-process (`fault(…)`) or, where the server runs
 * as a process of its own (`tsx test/support/fake-audience.ts [port]`), by `POST /_control/fault`.
 *
 * Routes: upserts by POST, PUT or PATCH and removals by DELETE (or POST below `…/remove`) on any other path; one member a
 * request where the path ends in `/members/<id>`; `GET <path>` reads members back, `GET /keys/<key>` the answer to a request
 * that was applied; `POST /oauth/token` gives tokens.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { pathToFileURL } from 'node:url';
import { type AudienceState, applyRequest, positionsOf, type RowResult } from './fake-audience-state.ts';

export type Fault =
  /** This status; `applied` says whether the request took effect all the same. */
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: string; applied?: boolean }
  /** The connection is reset before or after the request has taken effect. */
  | { kind: 'reset'; applied: boolean }
  /** The effect at once, the reply late. */
  | { kind: 'delay'; ms: number }
  /** Applied; the reply's body ends too early. */
  | { kind: 'truncate' }
  /** Applied; the reply comes one byte at a time. */
  | { kind: 'drip'; everyMs: number }
  /** Applied but for `reject`; the rows of the reply are lacking, repeated, foreign or shuffled. */
  | {
      kind: 'rows';
      status?: number;
      reject?: number[];
      missing?: number[];
      repeat?: number[];
      foreign?: string[];
      shuffle?: boolean;
    }
  /** Applied but for the first; the reply counts only. */
  | { kind: 'counts' }
  /** Not applied; a 400 that repeats the request's authorization and body. */
  | { kind: 'echo' }
  /** Not applied yet: 202 with a job id. */
  | { kind: 'job'; id: string }
  /** Applied; exactly these bytes go out, then the connection ends. */
  | { kind: 'raw'; text: string };

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** Number of the connection that it came on, from 1. */
  readonly connection: number;
}

export interface FakeAudienceSettings {
  readonly port?: number;
  /** Field(s) that name a member; the first one present counts. */
  readonly idFields?: readonly string[];
  /** `rows`: `{results: [{id, status}]}`; `ok`: `{"ok":true}`; `empty`: 204. */
  readonly reply?: 'rows' | 'ok' | 'empty';
  /** Refuses requests without this bearer token. */
  readonly bearer?: string;
  /** Accepts only tokens from its own token endpoint. */
  readonly oauth?: { readonly clientId: string; readonly clientSecret: string; readonly expiresInS: number };
  /** How long the server keeps idle connections. */
  readonly keepAliveMs?: number;
}

export class FakeAudience {
  readonly requests: SeenRequest[] = [];
  /** Requests at the token endpoint. */
  readonly tokenRequests: SeenRequest[] = [];
  readonly state: AudienceState = { members: new Map(), effects: [], replies: new Map() };
  /** Status that the token endpoint answers with instead of a token. */
  tokenStatus: number | null = null;
  /** Members that it never takes, nor lets go: row by row, or by this status for every request that names one. */
  poison: { readonly ids: ReadonlySet<string>; readonly status?: number } = { ids: new Set() };
  /** What the next read meets; faults of {@link fault} are for writes. */
  readFault: Fault | null = null;
  readonly #settings: FakeAudienceSettings;
  readonly #server: Server;
  readonly #connections = new Map<Socket, number>();
  readonly #faults: Fault[] = [];
  readonly #tokens = new Set<string>();
  #always: Fault | null = null;
  #tokenCount = 0;

  private constructor(settings: FakeAudienceSettings) {
    this.#settings = settings;
    this.#server = createServer((incoming, outgoing) => void this.#handle(incoming, outgoing));
    this.#server.keepAliveTimeout = settings.keepAliveMs ?? 5_000;
    let count = 0;
    this.#server.on('connection', (socket: Socket) => {
      count += 1;
      this.#connections.set(socket, count);
      socket.on('error', () => undefined);
    });
  }

  static async start(settings: FakeAudienceSettings = {}): Promise<FakeAudience> {
    const fake = new FakeAudience(settings);
    await new Promise<void>((resolve) => fake.#server.listen(settings.port ?? 0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ids of the members held, sorted. */
  get held(): readonly string[] {
    return [...this.state.members.keys()].sort();
  }

  /** The next `times` requests (token requests and reads aside) meet this fault; several calls queue up. */
  fault(fault: Fault, times = 1): void {
    for (let n = 0; n < times; n += 1) this.#faults.push(fault);
  }

  /** Every request meets this fault once the queue is empty; `null` ends that. */
  always(fault: Fault | null): void {
    this.#always = fault;
  }

  /** Forgets members, requests and faults; tokens and connections stay. */
  reset(): void {
    this.requests.length = 0;
    this.#faults.length = 0;
    this.#always = null;
    this.readFault = null;
    this.state.members.clear();
    this.state.effects.length = 0;
    this.state.replies.clear();
  }

  /** All tokens given so far are refused from now on. */
  revokeTokens(): void {
    this.#tokens.clear();
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const seen = await this.#read(incoming);
    if (seen === null) return;
    if (seen.path === '/_control/fault') return sendJson(outgoing, 200, this.#control(seen));
    if (seen.path === '/oauth/token') return sendJson(outgoing, ...this.#token(seen));
    this.requests.push(seen);
    if (!this.#mayEnter(seen)) return sendJson(outgoing, 401, { error: 'unauthorized' });
    const { readFault } = this;
    if (seen.method === 'GET' && readFault === null) return sendJson(outgoing, ...this.#readBack(seen));
    if (seen.method === 'GET') this.readFault = null;
    const fault = seen.method === 'GET' ? readFault : (this.#faults.shift() ?? this.#always);
    if (fault === null) return this.#judge(seen, outgoing);
    await this.#misbehave(fault, seen, incoming, outgoing);
  }

  async #read(incoming: IncomingMessage): Promise<SeenRequest | null> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
    } catch {
      return null; // the client went away
    }
    return {
      method: incoming.method ?? '',
      path: incoming.url ?? '',
      headers: { ...incoming.headers },
      body: Buffer.concat(chunks).toString('utf8'),
      connection: this.#connections.get(incoming.socket) ?? 0,
    };
  }

  #readBack({ path }: SeenRequest): readonly [number, unknown] {
    const { members, replies } = this.state;
    const [, kind, key = ''] = path.split('/');
    if (kind !== 'keys') return [200, { count: members.size, members: [...members.values()] }];
    const results = replies.get(decodeURIComponent(key));
    return results === undefined ? [404, {}] : [200, { results }];
  }

  #mayEnter({ headers }: SeenRequest): boolean {
    const { bearer, oauth } = this.#settings;
    const token = String(headers.authorization ?? '').replace(/^Bearer /, '');
    if (oauth !== undefined) return this.#tokens.has(token);
    return bearer === undefined || token === bearer;
  }

  #token(seen: SeenRequest): readonly [number, unknown] {
    this.tokenRequests.push(seen);
    const { oauth } = this.#settings;
    if (this.tokenStatus !== null) return [this.tokenStatus, { error: 'invalid_client' }];
    if (oauth === undefined) return [404, {}];
    const pair = [oauth.clientId, oauth.clientSecret].map((text) =>
      encodeURIComponent(text).replaceAll('%20', '+'),
    );
    const expected = Buffer.from(pair.join(':')).toString('base64');
    const form = new URLSearchParams(seen.body);
    const inForm =
      form.get('client_id') === oauth.clientId && form.get('client_secret') === oauth.clientSecret;
    if (seen.headers.authorization !== `Basic ${expected}` && !inForm)
      return [401, { error: 'invalid_client' }];
    this.#tokenCount += 1;
    const token = `granted-token-${this.#tokenCount}`;
    this.#tokens.add(token);
    return [200, { access_token: token, token_type: 'Bearer', expires_in: oauth.expiresInS }];
  }

  #apply(seen: SeenRequest, reject: readonly number[]): readonly RowResult[] {
    return applyRequest(this.state, seen, this.#idFields, reject);
  }

  get #idFields(): readonly string[] {
    return this.#settings.idFields ?? ['email_sha256', 'email', 'id'];
  }

  #judge(seen: SeenRequest, outgoing: ServerResponse): void {
    const { ids, status } = this.poison;
    const poisoned = ids.size === 0 ? [] : positionsOf(seen, this.#idFields, ids);
    if (poisoned.length > 0 && status !== undefined)
      sendJson(outgoing, status, { error: 'one of these is not valid' });
    else this.#answer(outgoing, this.#apply(seen, poisoned));
  }

  #answer(outgoing: ServerResponse, rows: readonly RowResult[]): void {
    const reply = this.#settings.reply ?? 'rows';
    if (reply === 'empty') outgoing.writeHead(204).end();
    else sendJson(outgoing, 200, reply === 'ok' ? { ok: true } : { results: rows });
  }

  async #misbehave(
    fault: Fault,
    seen: SeenRequest,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<void> {
    switch (fault.kind) {
      case 'status':
        if (fault.applied === true) this.#apply(seen, []);
        outgoing.writeHead(fault.status, fault.headers).end(fault.body ?? '');
        return;
      case 'reset':
        if (fault.applied) this.#apply(seen, []);
        incoming.socket.resetAndDestroy();
        return;
      case 'delay': {
        const rows = this.#apply(seen, []);
        await sleep(fault.ms);
        return this.#answer(outgoing, rows);
      }
      case 'truncate': {
        const text = JSON.stringify({ results: this.#apply(seen, []) });
        outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
        outgoing.write(text.slice(0, Math.floor(text.length / 2)), () => incoming.socket.end());
        return;
      }
      case 'drip':
        return drip(outgoing, JSON.stringify({ results: this.#apply(seen, []) }), fault.everyMs);
      case 'rows':
        return sendJson(outgoing, fault.status ?? 200, {
          results: misreport(this.#apply(seen, fault.reject ?? []), fault),
        });
      case 'counts': {
        const rows = this.#apply(seen, [0]);
        return sendJson(outgoing, 200, { received: rows.length, invalid: 1 });
      }
      case 'echo':
        return sendJson(outgoing, 400, {
          error: 'bad request',
          got: seen.headers.authorization,
          body: seen.body,
        });
      case 'job':
        return sendJson(outgoing, 202, { job_id: fault.id, status: 'processing' });
      case 'raw':
        this.#apply(seen, []);
        incoming.socket.end(fault.text);
        return;
    }
  }

  #control(seen: SeenRequest): unknown {
    const order = JSON.parse(seen.body) as { fault: Fault | null; times?: number; always?: boolean };
    if (order.always === true || order.fault === null) this.always(order.fault);
    else this.fault(order.fault, order.times);
    return {};
  }
}

function misreport(
  rows: readonly RowResult[],
  fault: Extract<Fault, { kind: 'rows' }>,
): readonly RowResult[] {
  const kept = rows.filter((_, index) => fault.missing?.includes(index) !== true);
  const repeated = rows.filter((_, index) => fault.repeat?.includes(index) === true);
  const foreign = (fault.foreign ?? []).map((id) => ({ id, status: 'ok' }));
  const all = [...kept, ...repeated, ...foreign];
  return fault.shuffle === true ? all.reverse() : all;
}

function sendJson(outgoing: ServerResponse, status: number, value: unknown): void {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

async function drip(outgoing: ServerResponse, text: string, everyMs: number): Promise<void> {
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length });
  for (const char of text) {
    if (outgoing.destroyed) return;
    outgoing.write(char);
    await sleep(everyMs);
  }
  outgoing.end();
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const fake = await FakeAudience.start({ port: Number(process.argv[2] ?? 0) });
  process.stdout.write(`${JSON.stringify({ url: fake.url })}\n`);
  process.once('SIGTERM', () => void fake.stop());
}
