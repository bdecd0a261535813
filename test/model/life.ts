/**
 * One worker process in miniature: what it asks of the journal and of the destination passes through here. Killed, nothing
 * of it has an effect any more, and its connections are gone; frozen, it stands still until it is thawed.
 */

import type pg from 'pg';
import type { FaultKind, Faults } from './faults.ts';

/** What a dead worker's code sees; nobody hears of it. */
class Killed extends Error {
  readonly code = 'KILLED';
}

/** As the driver says it, so that the code under test takes it for a journal that is away. */
class ConnectionLost extends Error {
  readonly code = 'ECONNRESET';
}

/** Where a point lies: whether locks are held there, that another worker would wait for, and whether it is a statement. */
interface Point {
  readonly name: string;
  readonly locked: boolean;
  readonly sql: boolean;
}

/** Whether a transaction that loads a candidate holds the run before and after a statement of it. */
function locks(text: string): readonly [before: boolean, after: boolean] {
  if (text.includes('retl.loaded(')) return [false, true];
  return text === 'commit' ? [true, false] : [false, false];
}

export class Life {
  dead = false;
  /** It has stood still for longer than a request may be held back. */
  late = false;
  /** What has happened to it; the driver decides what follows. */
  fate: Extract<FaultKind, 'kill' | 'freeze' | 'terminate'> | null = null;
  /** What somebody asked for while it worked. */
  asked: Extract<FaultKind, 'stop' | 'cancel' | 'abort'> | null = null;
  /** Resolves when it is killed or frozen. */
  readonly lost: Promise<void>;
  /** Something else may happen at this point, where nobody would wait for a lock of this worker. */
  onPoint: () => Promise<void> = async () => undefined;
  /** Tells its activity to stop. */
  onStop: () => void = () => undefined;
  readonly #clients = new Set<pg.PoolClient>();
  #lose: () => void = () => undefined;
  #gate: Promise<void> | null = null;
  #thaw: () => void = () => undefined;
  #pending = 0;

  constructor(
    private readonly pool: pg.Pool,
    private readonly faults: Faults,
    /** The run that its activity is about. */
    readonly run: string,
  ) {
    this.lost = new Promise((resolve) => {
      this.#lose = resolve;
    });
  }

  /** The journal, as this worker sees it. */
  get journal(): pg.Pool {
    const connect = async (): Promise<pg.PoolClient> => this.#client(await this.pool.connect());
    return new Proxy(this.pool, {
      get: (target, name) => {
        if (name === 'connect') return connect;
        if (name !== 'query') return Reflect.get(target, name, target);
        return (...args: unknown[]) =>
          this.#statement(String(args[0]), () => Reflect.apply(target.query, target, args));
      },
    });
  }

  /** A request leaves, or is answered. */
  request(name: string): Promise<void> {
    return this.#point({ name, locked: false, sql: false });
  }

  /** Goes on where it stood. */
  thaw(): void {
    this.#gate = null;
    this.#thaw();
  }

  /** What is on its way ends, and everything else of it comes to nothing. */
  async die(): Promise<void> {
    this.dead = true;
    this.thaw();
    while (this.#pending > 0) await new Promise((resolve) => setImmediate(resolve));
    for (const client of this.#clients) client.release(true);
    this.#clients.clear();
  }

  #client(client: pg.PoolClient): pg.PoolClient {
    this.#clients.add(client);
    return new Proxy(client, {
      get: (target, name) => {
        if (name === 'release') {
          return (destroy?: boolean) => {
            if (this.#clients.delete(client)) client.release(destroy);
          };
        }
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          const work = () => Reflect.apply(value, target, args);
          // A COPY is one with the statements around it.
          if (name !== 'query' || typeof args[0] !== 'string') return work();
          return this.#statement(args[0], work, locks(args[0]));
        };
      },
    });
  }

  async #statement(
    text: string,
    work: () => Promise<unknown>,
    [before, after]: readonly [boolean, boolean] = [false, false],
  ): Promise<unknown> {
    await this.#point({ name: `before ${text.trim()}`, locked: before, sql: true });
    this.#pending += 1;
    let result: unknown;
    try {
      result = await work();
    } finally {
      this.#pending -= 1;
    }
    await this.#point({ name: `after ${text.trim()}`, locked: after, sql: true });
    return result;
  }

  async #point({ name, locked, sql }: Point): Promise<void> {
    await this.#gate;
    if (this.dead) throw new Killed();
    // Once thawed, it is no longer the one that the history is about.
    if (this.fate !== null) return;
    if (!locked) await this.onPoint();
    const kind = this.faults.pass(name, (k) => (k === 'freeze' ? !locked : k !== 'drop' || sql));
    switch (kind) {
      case null:
        return;
      case 'drop':
        throw new ConnectionLost();
      case 'stop':
      case 'cancel':
      case 'abort':
        this.asked = kind;
        this.onStop();
        return;
      case 'freeze':
        this.fate = kind;
        this.#gate = new Promise((resolve) => {
          this.#thaw = resolve;
        });
        this.#lose();
        await this.#gate;
        if (this.dead) throw new Killed();
        return;
      default:
        this.dead = true;
        this.fate = kind;
        this.#lose();
        throw new Killed();
    }
  }
}
