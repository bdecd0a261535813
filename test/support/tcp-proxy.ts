/** A real TCP proxy with failure knobs, for tests that lose a connection at a chosen moment. */

import { connect, createServer, type Server, type Socket } from 'node:net';

export interface TcpProxy {
  readonly host: string;
  readonly port: number;
  /** Connections that are open now. */
  readonly open: number;
  /** Connections that were ever accepted. */
  readonly accepted: number;
  /** Bytes that came from the server, over all connections. */
  readonly carried: number;
  /** Ends every open connection at once, as a dying host would. */
  cut(): void;
  /** Ends each connection when it has carried this many bytes from the server; `null`: no limit. */
  cutAfter(bytesFromServer: number | null): void;
  /** Connections stay open and carry nothing more, in either direction, until `resume`. */
  freeze(): void;
  resume(): void;
  /** New connections are closed at once while this is set. */
  refuse(on: boolean): void;
  /** Where new connections lead from now on: a fail-over. */
  pointTo(target: Target): void;
  close(): Promise<void>;
}

export interface Target {
  readonly host: string;
  readonly port: number;
}

interface Knobs {
  target: Target;
  cutAfter: number | null;
  refusing: boolean;
  frozen: boolean;
  carried: number;
}

/** Both ends of one proxied connection. */
class Link {
  private fromServer = 0;
  private readonly server: Socket;

  constructor(
    private readonly client: Socket,
    private readonly knobs: Knobs,
    onEnd: () => void,
  ) {
    this.server = connect(knobs.target);
    this.carry(client, this.server, () => undefined);
    this.carry(this.server, client, (bytes) => this.count(bytes));
    for (const socket of [client, this.server]) {
      socket.on('error', () => this.cut());
      socket.once('close', () => {
        this.cut();
        onEnd();
      });
    }
    if (knobs.frozen) this.freeze();
  }

  cut(): void {
    this.client.resetAndDestroy();
    this.server.resetAndDestroy();
  }

  freeze(): void {
    this.client.pause();
    this.server.pause();
  }

  resume(): void {
    this.client.resume();
    this.server.resume();
  }

  private carry(from: Socket, to: Socket, count: (bytes: number) => void): void {
    from.on('data', (chunk: Buffer) => {
      if (!to.write(chunk)) from.pause();
      count(chunk.length);
    });
    to.on('drain', () => {
      if (!this.knobs.frozen) from.resume();
    });
    from.on('end', () => to.end());
  }

  private count(bytes: number): void {
    this.fromServer += bytes;
    this.knobs.carried += bytes;
    if (this.knobs.cutAfter !== null && this.fromServer >= this.knobs.cutAfter) this.cut();
  }
}

/** A proxy on a free loopback port. Close it after the test. */
export async function startTcpProxy(target: Target): Promise<TcpProxy> {
  const knobs: Knobs = { target, cutAfter: null, refusing: false, frozen: false, carried: 0 };
  const links = new Set<Link>();
  let accepted = 0;
  const server = createServer((client) => {
    accepted += 1;
    if (knobs.refusing) {
      client.resetAndDestroy();
      return;
    }
    const link = new Link(client, knobs, () => links.delete(link));
    links.add(link);
  });
  const port = await listen(server);
  const cut = (): void => {
    for (const link of [...links]) link.cut();
  };
  return {
    host: '127.0.0.1',
    port,
    get open() {
      return links.size;
    },
    get accepted() {
      return accepted;
    },
    get carried() {
      return knobs.carried;
    },
    cut,
    cutAfter: (bytes) => {
      knobs.cutAfter = bytes;
    },
    freeze: () => {
      knobs.frozen = true;
      for (const link of links) link.freeze();
    },
    resume: () => {
      knobs.frozen = false;
      for (const link of links) link.resume();
    },
    refuse: (on) => {
      knobs.refusing = on;
    },
    pointTo: (next) => {
      knobs.target = next;
    },
    close: async () => {
      cut();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('no TCP address'));
      else resolve(address.port);
    });
  });
}
