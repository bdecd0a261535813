/**
 * A ledger of members: a real server on loopback that keeps book of everything that is ever done to it, and that a test can
 * stop at an exact step: when a request has arrived, or when it has taken effect and its answer is still here. It has a session
 * to open, requests of two steps (`POST /uploads` announces one, `PUT /uploads/<id>` carries it out, or `PUT /jobs/<id>` takes it for
 * later and `POST /jobs/<id>` sees to it), and a finish, which may drop whoever was not uploaded in its session. Sessions and
 * finishes may be taken for later, too: then `POST /steps/<name>` sees to them.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Steps of the protocol, by the first word of their path. */
export type LedgerStep =
  | 'sessions'
  | 'uploads'
  | 'upload'
  | 'job'
  | 'finish'
  | 'abort'
  | 'slow session'
  | 'slow finish';

/**
 * How an adapter uses it. `later`: requests are taken for later; `slow`: the steps of the session are; `replace`: the finish drops
 * whoever was not uploaded; `publish`: uploads count from the finish on only, too.
 */
export const LEDGER_MODES = ['direct', 'later', 'slow', 'replace', 'publish'] as const;
export type LedgerMode = (typeof LEDGER_MODES)[number];

export function replaces(mode: LedgerMode): boolean {
  return mode === 'replace' || mode === 'publish';
}

export interface LedgerHold {
  readonly step: LedgerStep;
  /** `received`: it never takes effect; `applied`: it has, and the answer never comes. */
  readonly when: 'received' | 'applied';
  /** Which such request from now on, from 1. */
  readonly nth?: number;
}

export interface HeldRequest {
  /** Resolves when a request stands there; rejects after half a minute. */
  readonly reached: Promise<void>;
  /** Lets it go on, to whoever still waits for its answer. */
  release(): void;
}

interface Upload {
  readonly key: string;
  readonly action: 'upsert' | 'remove';
  readonly session: string;
  /** It counts from the finish of its session on, and not before. */
  readonly hidden?: boolean;
}

interface Job {
  readonly upload: Upload;
  readonly body: string;
}

type Row = { readonly id: string; readonly [field: string]: unknown };

const PATIENCE_MS = 30_000;

export class Ledger {
  readonly members = new Map<string, Row>();
  /** Every effect on a member, in order. */
  readonly effects: { readonly action: 'upsert' | 'remove'; readonly id: string; readonly key: string }[] =
    [];
  /** How often a request with this key arrived to be carried out, and how often it was. */
  readonly arrived = new Map<string, number>();
  readonly applied = new Map<string, number>();
  /** Sessions opened by whom, and finishes by key, each as often as it took effect. */
  readonly sessions = new Map<string, number>();
  readonly finishes = new Map<string, number>();
  /** The next uploads are answered by 429, unapplied. */
  busy = 0;
  /** Members that are not taken, and everybody else of their requests is. */
  readonly refuses = new Set<string>();
  /** Which of them, taken for later, are not seen to when they are asked about. */
  stuck: 'sessions' | 'finish' | null = null;
  readonly #uploads = new Map<string, Upload>();
  /** Requests taken for later, by their keys. */
  readonly #jobs = new Map<string, Job>();
  /** Sessions and finishes taken for later, by `sessions/<name>` or `finish/<name>`. */
  readonly #slow = new Set<string>();
  /** Members uploaded by each session. */
  readonly #uploaded = new Map<string, Set<string>>();
  /** What the finish of a session makes true. */
  readonly #hidden: { readonly upload: Upload; readonly rows: readonly Row[] }[] = [];
  #hold: (LedgerHold & { left: number; readonly reach: () => void; readonly gate: Promise<void> }) | null =
    null;
  readonly #server: Server;

  private constructor(
    /** Whether a second copy of a request takes no effect. */
    readonly idempotent: boolean,
  ) {
    this.#server = createServer((incoming, outgoing) => void this.#handle(incoming, outgoing));
    this.#server.on('connection', (socket) => socket.on('error', () => undefined));
  }

  static async start(idempotent: boolean): Promise<Ledger> {
    const ledger = new Ledger(idempotent);
    await new Promise<void>((resolve) => ledger.#server.listen(0, '127.0.0.1', resolve));
    return ledger;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The next request of this step goes no further. */
  hold(hold: LedgerHold): HeldRequest {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const reached = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nobody came to ${hold.step}`)), PATIENCE_MS);
      this.#hold = {
        ...hold,
        left: hold.nth ?? 1,
        gate,
        reach: () => {
          clearTimeout(timer);
          resolve();
        },
      };
    });
    reached.catch(() => undefined);
    return { reached, release };
  }

  /** Everything that was taken for later is carried out now. */
  work(): void {
    for (const { upload, body } of this.#jobs.values())
      if (!this.applied.has(upload.key)) this.#carryOut(upload, body);
    for (const name of this.#slow) {
      const book = name.startsWith('finish/') ? this.finishes : this.sessions;
      const key = name.slice(name.indexOf('/') + 1);
      if (!book.has(key)) this.#enter(book, key);
    }
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await read(incoming);
    if (body === null) return;
    const [, step = '', ...rest] = decodeURIComponent(incoming.url ?? '').split('/');
    const name = rest.join('/');
    const question = incoming.method === 'GET';
    const [status, answer] = question ? this.#look(step, name) : await this.#act(step, name, body, incoming);
    outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }

  #look(step: string, name: string): readonly [number, unknown] {
    if (step === 'members') return [200, { count: this.members.size }];
    if (step === 'jobs') return [200, { done: this.#jobs.has(name) }];
    if (step === 'steps') return [200, { done: this.#slow.has(name) }];
    const book = step === 'sessions' ? this.sessions : step === 'finish' ? this.finishes : this.applied;
    return [200, { done: book.has(name) }];
  }

  async #act(
    step: string,
    name: string,
    body: string,
    { method }: IncomingMessage,
  ): Promise<readonly [number, unknown]> {
    const held = stepOf(step, name, method);
    await this.#stand(held, 'received');
    const answer = this.#effect(held, step, name, body);
    await this.#stand(held, 'applied');
    return answer;
  }

  #effect(step: LedgerStep, path: string, name: string, body: string): readonly [number, unknown] {
    switch (step) {
      case 'slow session':
      case 'slow finish':
        if (!name.startsWith(`${this.stuck}/`)) this.work();
        return [200, { done: !name.startsWith(`${this.stuck}/`) }];
      case 'abort':
        return [200, { closed: this.sessions.delete(name) }];
      case 'sessions':
        if (body === 'later') return this.#takeStep(`sessions/${name}`);
        return [200, { count: this.#enter(this.sessions, name) }];
      case 'finish':
        if (body === 'later') return this.#takeStep(`finish/${name}`);
        if (body !== '' && !this.finishes.has(name)) this.#replace(name, body);
        return [200, { count: this.#enter(this.finishes, name) }];
      case 'job':
        this.work();
        return [200, { accepted: this.#rowsOf(name) }];
      case 'uploads': {
        const upload = JSON.parse(body) as Upload;
        const id = `upload-${this.#uploads.size + 1}`;
        this.#uploads.set(id, upload);
        return [200, { id }];
      }
      case 'upload': {
        const upload = this.#uploads.get(name);
        if (upload === undefined) return [404, {}];
        return path === 'jobs' ? this.#takeForLater(upload, body) : this.#carryOut(upload, body);
      }
    }
  }

  #takeStep(job: string): readonly [number, unknown] {
    this.arrived.set(job, (this.idempotent ? 0 : (this.arrived.get(job) ?? 0)) + 1);
    this.#slow.add(job);
    return [202, { job }];
  }

  #takeForLater(upload: Upload, body: string): readonly [number, unknown] {
    this.arrived.set(upload.key, (this.arrived.get(upload.key) ?? 0) + 1);
    if (!this.#jobs.has(upload.key)) this.#jobs.set(upload.key, { upload, body });
    return [202, { job: upload.key }];
  }

  #rowsOf(key: string): readonly string[] {
    const rows = JSON.parse(this.#jobs.get(key)?.body ?? '[]') as readonly Row[];
    return rows.map((row) => row.id);
  }

  /** What the session has uploaded counts, and whoever it has not is dropped. */
  #replace(key: string, session: string): void {
    for (const { upload, rows } of this.#hidden)
      if (upload.session === session) this.#takeEffect(upload, rows);
    for (const id of [...this.members.keys()]) {
      if (this.#uploaded.get(session)?.has(id) === true) continue;
      this.members.delete(id);
      this.effects.push({ action: 'remove', id, key });
    }
  }

  #carryOut(upload: Upload, body: string): readonly [number, unknown] {
    const { key, session } = upload;
    if (!this.#jobs.has(key)) this.arrived.set(key, (this.arrived.get(key) ?? 0) + 1);
    if (this.busy > 0) {
      this.busy -= 1;
      return [429, {}];
    }
    const all = JSON.parse(body) as readonly Row[];
    const rows = all.filter((row) => !this.refuses.has(row.id));
    if (this.#enter(this.applied, key) === 1 || !this.idempotent) {
      const uploaded = this.#uploaded.get(session) ?? new Set();
      this.#uploaded.set(session, uploaded);
      for (const row of rows) uploaded.add(row.id);
      if (upload.hidden === true) this.#hidden.push({ upload, rows });
      else this.#takeEffect(upload, rows);
    }
    return [200, { accepted: rows.map((row) => row.id) }];
  }

  #takeEffect({ action, key }: Upload, rows: readonly Row[]): void {
    for (const row of rows) {
      this.effects.push({ action, id: row.id, key });
      if (action === 'upsert') this.members.set(row.id, row);
      else this.members.delete(row.id);
    }
  }

  /** Enters an effect into a book; a second copy is none where twice equals once. */
  #enter(book: Map<string, number>, key: string): number {
    const count = book.get(key) ?? 0;
    book.set(key, this.idempotent ? 1 : count + 1);
    return this.idempotent && count > 0 ? 2 : count + 1;
  }

  async #stand(step: LedgerStep, when: LedgerHold['when']): Promise<void> {
    const hold = this.#hold;
    if (hold?.step !== step || hold.when !== when) return;
    hold.left -= 1;
    if (hold.left > 0) return;
    hold.reach();
    this.#hold = null;
    await hold.gate;
  }
}

function stepOf(path: string, name: string, method = ''): LedgerStep {
  if (path === 'steps') return name.startsWith('finish/') ? 'slow finish' : 'slow session';
  if (path === 'sessions' && method === 'DELETE') return 'abort';
  if (path === 'sessions' || path === 'finish') return path;
  if (method === 'PUT') return 'upload';
  return path === 'jobs' ? 'job' : 'uploads';
}

async function read(incoming: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of incoming) chunks.push(Buffer.from(chunk));
  } catch {
    return null;
  }
  return Buffer.concat(chunks).toString('utf8');
}
