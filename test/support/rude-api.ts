/**
 * An audience API without an HTTP library: each reply is bytes that a test has written, or a lack of them. It keeps members
 * by id and counts how often each effect took place, so that a test can tell a lost one from a double one.
 */

import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';

export interface RudeRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly socket: Socket;
  /** Milliseconds since the epoch when it had arrived whole. */
  readonly at: number;
  /** Takes effect; returns the body that a well-behaved API would send. */
  apply(): string;
}

/** Answers one request, well or badly. */
export type Manners = (request: RudeRequest) => Promise<void> | void;

export class RudeApi {
  readonly members = new Map<string, unknown>();
  /** Effects by `action id`: how often each took place. */
  readonly effects = new Map<string, number>();
  /** Requests that change something. */
  readonly writes: RudeRequest[] = [];
  /** Manners for the next requests, one each; then `always`. */
  readonly next: Manners[] = [];
  always: Manners = polite;
  /** Closes each new connection before it has said a word. */
  slamming = false;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #port = 0;

  static async start(): Promise<RudeApi> {
    const api = new RudeApi();
    await api.listen();
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Comes (back) up, at the same address. */
  async listen(): Promise<void> {
    const server = createServer((socket) => this.#serve(socket));
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Goes down: connections are refused. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    const closed = new Promise<void>((resolve) => {
      if (server === null) resolve();
      else server.close(() => resolve());
    });
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => undefined);
    if (this.slamming) {
      socket.end();
      return;
    }
    let bytes = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      for (let request = takeRequest(bytes); request !== null; request = takeRequest(bytes)) {
        bytes = bytes.subarray(request.length);
        void this.#answer(request.method, request.path, request.body, socket);
      }
    });
  }

  async #answer(method: string, path: string, body: string, socket: Socket): Promise<void> {
    if (method === 'GET') {
      socket.write(json(`{"count":${this.members.size}}`));
      return;
    }
    const request: RudeRequest = {
      method,
      path,
      body,
      socket,
      at: Date.now(),
      apply: () => this.#apply(method, body),
    };
    this.writes.push(request);
    await (this.next.shift() ?? this.always)(request);
  }

  #apply(method: string, body: string): string {
    const rows = JSON.parse(body) as readonly { readonly id: string }[];
    for (const row of rows) {
      const name = `${method} ${row.id}`;
      this.effects.set(name, (this.effects.get(name) ?? 0) + 1);
      if (method === 'DELETE') this.members.delete(row.id);
      else this.members.set(row.id, row);
    }
    return JSON.stringify({ results: rows.map(({ id }) => ({ id, status: 'ok' })) });
  }
}

/** A request with a body of a known length, once all of it is there. */
function takeRequest(
  bytes: Buffer,
): { readonly method: string; readonly path: string; readonly body: string; readonly length: number } | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const head = bytes.subarray(0, end).toString('latin1');
  const size = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0);
  const length = end + 4 + size;
  if (bytes.length < length) return null;
  const [method = '', path = ''] = head.split(' ');
  return { method, path, body: bytes.subarray(end + 4, length).toString('utf8'), length };
}

/** A whole reply of HTTP/1.1 with a JSON body. */
export function json(body: string, head = '200 OK', headers: readonly string[] = []): string {
  const lines = [
    `HTTP/1.1 ${head}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return `${[...lines, ...headers].join('\r\n')}\r\n\r\n${body}`;
}

/** As documented. */
export const polite: Manners = (request) => {
  request.socket.write(json(request.apply()));
};
