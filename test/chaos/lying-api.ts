/**
 * An API that takes upserts and removals, at once or by jobs, and lies about them; and its true ledger: every request that
 * ever arrived, every effect that took place. What it says is not always so; what stands in the ledger is.
 *
 *   POST, DELETE /members    rows `{id, plan}`; answers `{results: [{id, status}]}`, or 202 `{job_id}`
 *   POST /finish             ends a run; {ok}
 *   GET /members             {count}; GET /members/<id>: {member} or 404
 *   GET /keys/<key>          the answer that the request with this key was given, or its job; or 404
 *   GET /jobs/<id>           {state, results}
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Dice } from './dice.ts';
import {
  cutOff,
  JOB_FATES,
  type JobFate,
  json,
  lieToReader,
  mangled,
  READ_LIES,
  type Reply,
  type RowResult,
  send,
  WRITE_LIES,
  type WriteLie,
} from './lies.ts';

interface Row {
  readonly id: string;
  /** Of an upsert. */
  readonly plan?: string;
}

export interface Arrival {
  readonly key: string;
  readonly action: 'upsert' | 'remove' | 'finish';
  readonly rows: readonly Row[];
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The answer proves that nothing was applied. */
  told: boolean;
}

export interface Effect {
  readonly key: string;
  readonly action: 'upsert' | 'remove' | 'finish';
  readonly id: string;
  readonly plan: string;
  readonly at: number;
  /** Done by the operator, to make a half-applied request whole. */
  readonly byHand: boolean;
}

interface Job {
  readonly id: string;
  readonly arrival: Arrival;
  fate: JobFate;
  /** Polls that are still answered wrongly. */
  wrong: number;
  results: readonly RowResult[] | null;
  cancelled: boolean;
}

export interface LyingApiSettings {
  readonly jobs: boolean;
  /** A second copy of a request takes no effect, and is answered as the first was. */
  readonly dedupes: boolean;
  /** Lies that this API does not tell. */
  readonly never?: readonly WriteLie[];
}

export class LyingApi {
  readonly members = new Map<string, string>();
  readonly arrivals: Arrival[] = [];
  readonly effects: Effect[] = [];
  /** What was found wrong with the requests themselves. */
  readonly offences: string[] = [];
  /** Share of requests that are lied about. */
  lying = 0;
  lies = 0;
  /** Members that it refuses, honestly. */
  readonly poison = new Set<string>();
  readonly #replies = new Map<string, readonly RowResult[]>();
  readonly #jobs: Job[] = [];
  readonly #late = new Map<NodeJS.Timeout, string>();
  /** Keys of which somebody has said that they never took effect. */
  readonly #barred = new Set<string>();
  readonly #server: Server;

  private constructor(
    private readonly dice: Dice,
    private readonly settings: LyingApiSettings,
  ) {
    this.#server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing));
    this.#server.on('connection', (socket) => socket.on('error', () => undefined));
  }

  static async start(dice: Dice, settings: LyingApiSettings): Promise<LyingApi> {
    const api = new LyingApi(dice, settings);
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const timer of this.#late.keys()) clearTimeout(timer);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /** The provider repairs what was broken: jobs go on, and those that tell wrongly tell rightly. */
  repair(): void {
    for (const job of this.#jobs) {
      job.wrong = 0;
      if (job.fate === 'stuck') {
        job.fate = 'fine';
        this.#work(job);
      }
    }
  }

  /**
   * A person looks at the provider and makes the outcome definite: what may still come is cancelled, and what was applied in
   * part is completed by hand, or taken back where nothing of it was.
   */
  settle(key: string): 'accepted' | 'not-applied' {
    for (const [timer, late] of this.#late) if (late === key) this.#forget(timer);
    for (const job of this.#jobs) if (job.arrival.key === key && job.results === null) job.cancelled = true;
    const done = new Set(this.effects.filter((effect) => effect.key === key).map(({ id }) => id));
    if (done.size === 0) {
      // A copy that comes all the same takes no effect of its own where the key is known.
      if (!this.settings.dedupes) this.#barred.add(key);
      return 'not-applied';
    }
    const arrival = this.arrivals.find((one) => one.key === key);
    const open = arrival?.rows.filter(({ id }) => !done.has(id)) ?? [];
    if (arrival !== undefined) for (const row of open) this.#effect(arrival, row, true);
    return 'accepted';
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(Buffer.from(chunk));
    } catch {
      return; // the client went away, before the request was whole
    }
    const path = decodeURIComponent(incoming.url ?? '');
    if (incoming.method === 'GET') return this.#read(path, outgoing);
    const finishes = path === '/finish';
    const arrival: Arrival = {
      key: String(incoming.headers['idempotency-key']),
      action: finishes ? 'finish' : incoming.method === 'DELETE' ? 'remove' : 'upsert',
      rows: finishes ? [{ id: '' }] : (JSON.parse(Buffer.concat(chunks).toString('utf8')) as readonly Row[]),
      at: Date.now(),
      told: false,
    };
    this.#meet(arrival);
    await this.#write(arrival, outgoing);
  }

  /** Holds a request to what was said of it before. */
  #meet(arrival: Arrival): void {
    if (this.#barred.has(arrival.key)) this.offences.push(`came after it was given up: ${arrival.key}`);
    const before = this.arrivals.filter(({ key, told }) => key === arrival.key && !told);
    if (!this.settings.dedupes && before.length > 0) this.offences.push(`sent twice: ${arrival.key}`);
    this.arrivals.push(arrival);
  }

  async #write(arrival: Arrival, outgoing: ServerResponse): Promise<void> {
    const lie = this.#lie();
    if (lie !== null && !(await this.#betray(lie, arrival, outgoing))) return;
    const results = this.#take(arrival);
    const right = this.#answer(arrival, results);
    switch (lie) {
      case null:
      case 'slow':
        return send(outgoing, right);
      case 'lost-after':
        return void outgoing.socket?.resetAndDestroy();
      case 'silent-after':
        return;
      case 'truncated':
        return cutOff(outgoing, right);
      case 'conflict-after':
        return send(outgoing, json(409, { error: 'conflict' }));
      default:
        return send(outgoing, mangled(lie, results, this.dice));
    }
  }

  #lie(): WriteLie | null {
    if (!this.dice.chance(this.lying)) return null;
    this.lies += 1;
    const lie = this.dice.weighted(WRITE_LIES);
    return this.settings.never?.includes(lie) === true ? 'slow' : lie;
  }

  /** @returns whether the request is carried out now */
  async #betray(lie: WriteLie, arrival: Arrival, outgoing: ServerResponse): Promise<boolean> {
    const told = (status: number): boolean => {
      arrival.told = true;
      outgoing.setHeader('retry-after', '1');
      send(outgoing, json(status, { error: 'no' }));
      return false;
    };
    switch (lie) {
      case 'told-busy':
        return told(429);
      case 'told-large':
        return told(413);
      case 'told-unauthorized':
        return told(401);
      case 'told-refused':
        return told(400);
      case 'lost-before':
        outgoing.socket?.resetAndDestroy();
        return false;
      case 'silent-before':
        return false;
      case 'error-before':
        send(outgoing, mangled(lie, [], this.dice));
        return false;
      case 'conflict-before':
        send(outgoing, json(409, { error: 'conflict' }));
        return false;
      case 'late':
        this.#later(arrival.key, this.dice.between(2_000, 6_000), () => this.#take(arrival));
        return false;
      case 'half':
        if (this.settings.jobs) return true;
        for (const row of arrival.rows.slice(0, Math.ceil(arrival.rows.length / 2)))
          this.#effect(arrival, row, false);
        outgoing.socket?.resetAndDestroy();
        return false;
      case 'slow':
        await new Promise((wake) => setTimeout(wake, this.dice.between(100, 900)));
        return true;
      default:
        return true;
    }
  }

  #later(key: string, ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#late.delete(timer);
      work();
    }, ms);
    this.#late.set(timer, key);
  }

  #forget(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#late.delete(timer);
  }

  /** Does what is asked, or takes it for later. */
  #take(arrival: Arrival): readonly RowResult[] {
    if (!this.settings.jobs) return this.#apply(arrival);
    const known = this.settings.dedupes && this.#jobs.some((job) => job.arrival.key === arrival.key);
    if (known) return [];
    const fate = this.dice.chance(this.lying) ? this.dice.weighted(JOB_FATES) : 'fine';
    const id = `job-${this.#jobs.length + 1}`;
    const job: Job = {
      id,
      arrival,
      fate,
      wrong: this.dice.between(1, 3),
      results: null,
      cancelled: false,
    };
    this.#jobs.push(job);
    this.#later('', this.dice.between(0, 2_500), () => this.#work(job));
    return [];
  }

  #work(job: Job): void {
    if (job.cancelled || job.results !== null || job.fate === 'stuck') return;
    const none = job.fate === 'failed-none' || job.fate === 'gone-none';
    job.results = none ? [] : this.#apply(job.arrival);
  }

  #apply(arrival: Arrival): readonly RowResult[] {
    const known = this.settings.dedupes ? this.#replies.get(arrival.key) : undefined;
    if (known !== undefined) return known;
    const results = arrival.rows.map((row): RowResult => {
      if (this.poison.has(row.id)) return { id: row.id, status: 'invalid' };
      this.#effect(arrival, row, false);
      return { id: row.id, status: 'ok' };
    });
    this.#replies.set(arrival.key, results);
    return results;
  }

  #effect({ key, action }: Arrival, { id, plan = '' }: Row, byHand: boolean): void {
    this.effects.push({ key, action, id, plan, at: Date.now(), byHand });
    if (action === 'upsert') this.members.set(id, plan);
    else if (action === 'remove') this.members.delete(id);
  }

  #answer(arrival: Arrival, results: readonly RowResult[]): Reply {
    if (arrival.action === 'finish') return json(200, { ok: true });
    if (!this.settings.jobs) return json(200, { results });
    const job = this.#jobs.findLast((one) => one.arrival.key === arrival.key);
    return json(202, { job_id: job?.id });
  }

  async #read(path: string, outgoing: ServerResponse): Promise<void> {
    const right = this.#tell(path);
    if (this.dice.chance(this.lying)) {
      this.lies += 1;
      if (await lieToReader(this.dice.weighted(READ_LIES), outgoing, right)) return;
    }
    send(outgoing, right);
  }

  #tell(path: string): Reply {
    const [, kind = '', name = ''] = path.split('/');
    if (kind === 'members' && name === '') return json(200, { count: this.members.size });
    if (kind === 'members') {
      const plan = this.members.get(name);
      return plan === undefined ? NONE : json(200, { member: { id: name, plan } });
    }
    const job = this.#jobs.find(({ id, arrival }) => (kind === 'keys' ? arrival.key === name : id === name));
    if (kind === 'jobs') return job === undefined ? NONE : this.#report(job);
    if (job !== undefined) return json(200, { job_id: job.id });
    const results = this.#replies.get(name);
    return results === undefined ? NONE : json(200, { results });
  }

  #report(job: Job): Reply {
    const { results, fate } = job;
    if (fate === 'gone-none' || fate === 'gone-done') return NONE;
    if (results === null || job.cancelled) return json(200, { state: 'processing' });
    if (fate === 'failed-none' || fate === 'failed-all') return json(200, { state: 'failed' });
    if (fate === 'fine' || job.wrong === 0) return json(200, { state: 'finished', results });
    job.wrong -= 1;
    const { body } = mangled(fate, results, this.dice);
    return json(200, { ...(JSON.parse(body) as object), state: 'finished' });
  }
}

const NONE = json(404, { error: 'no such thing' });
