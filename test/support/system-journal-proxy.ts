/**
 * A proxy between workers and the journal that stops a worker at an exact statement: before the server has seen it, or
 * after the server has done it and before the worker hears of it. That is how a test reaches the points of design.md
 * section 6 without a single line for tests in the worker.
 */

import { connect, createServer, type Server, type Socket } from 'node:net';

const REACHED_MS = 30_000;

export interface Hold {
  /** Part of the statement's text, as `retl.mark_sending(`. */
  readonly statement: string;
  /** `unseen`: the server never gets it; `unanswered`: it does its work, and its answer stays here. */
  readonly how: 'unseen' | 'unanswered';
  /** Which such statement from now on, from 1. */
  readonly nth?: number;
}

/** One statement that is being held. */
export interface Held {
  /** Resolves when a worker stands at it. */
  /** Rejects after half a minute. */
  readonly reached: Promise<void>;
  /** Lets it go on, where its connection still is. */
  release(): void;
}

interface Armed {
  readonly hold: Hold;
  left: number;
  readonly reached: () => void;
  readonly stop: (release: () => void) => void;
}

export class JournalProxy {
  readonly port: number;
  /** Connections are refused while this is set: the server is away. */
  refusing = false;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #armed: Armed[] = [];

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  static async start(target: { readonly host: string; readonly port: number }): Promise<JournalProxy> {
    const server = createServer();
    const port = await new Promise<number>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', () => {
        const address = server.address();
        if (address === null || typeof address === 'string') reject(new Error('no TCP address'));
        else resolve(address.port);
      });
    });
    const proxy = new JournalProxy(server, port);
    server.on('connection', (client: Socket) => proxy.#accept(client, target));
    return proxy;
  }

  /** Arms one hold: the next connection that sends such a statement stands still there. */
  hold(hold: Hold): Held {
    let reached = (): void => undefined;
    let letGo: (() => void) | null = null;
    const promise = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nobody came to ${hold.statement}`)), REACHED_MS);
      reached = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    promise.catch(() => undefined);
    const stop = (release: () => void): void => {
      letGo = release;
    };
    this.#armed.push({ hold, left: hold.nth ?? 1, reached, stop });
    return { reached: promise, release: () => letGo?.() };
  }

  /** Ends every connection at once, as a server that dies does. */
  cut(): void {
    for (const link of [...this.#links]) link.cut();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket, target: { readonly host: string; readonly port: number }): void {
    client.on('error', () => undefined);
    if (this.refusing) return void client.resetAndDestroy();
    const link = new Link(client, connect(target), (text) => this.#match(text));
    this.#links.add(link);
    client.once('close', () => this.#links.delete(link));
  }

  #match(text: string): Armed | null {
    for (const armed of this.#armed) {
      if (!text.includes(armed.hold.statement)) continue;
      armed.left -= 1;
      if (armed.left > 0) continue;
      this.#armed.splice(this.#armed.indexOf(armed), 1);
      return armed;
    }
    return null;
  }
}

/** One connection. The driver writes a whole statement at once, so that its text stands in one chunk. */
class Link {
  readonly #toServer: Buffer[] = [];
  readonly #toClient: Buffer[] = [];
  #held: Armed | null = null;

  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    private readonly match: (text: string) => Armed | null,
  ) {
    client.on('data', (chunk: Buffer) => this.#fromClient(chunk));
    server.on('data', (chunk: Buffer) => this.#fromServer(chunk));
    server.on('error', () => this.cut());
    client.on('close', () => this.#closed());
    server.on('close', () => client.destroy());
  }

  cut(): void {
    this.client.resetAndDestroy();
    this.server.resetAndDestroy();
  }

  /** A dead worker's connection ends on the server's side too: what the server has not seen, it never will. */
  #closed(): void {
    this.server.destroy();
  }

  #fromClient(chunk: Buffer): void {
    this.#held ??= this.#arrived(chunk);
    if (this.#held?.hold.how === 'unseen') this.#toServer.push(chunk);
    else this.server.write(chunk);
  }

  #arrived(chunk: Buffer): Armed | null {
    const armed = this.match(chunk.toString('latin1'));
    if (armed === null) return null;
    armed.stop(() => this.#release());
    armed.reached();
    return armed;
  }

  #fromServer(chunk: Buffer): void {
    if (this.#held === null) this.client.write(chunk);
    else this.#toClient.push(chunk);
  }

  #release(): void {
    this.#held = null;
    for (const chunk of this.#toServer.splice(0)) this.server.write(chunk);
    for (const chunk of this.#toClient.splice(0)) this.client.write(chunk);
  }
}
