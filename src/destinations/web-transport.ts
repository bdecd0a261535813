/**
 * One HTTP request, sent at most once. Node's own client is used because it never sends a request again by itself; that
 * is what lets `not-sent` and `lost` be told apart (rule 3: a lost answer is unknown, never sent again blindly).
 */

import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as plainRequest,
} from 'node:http';
import { request as secureRequest } from 'node:https';
import { ConnectedAgent, type Endpoint, errorCode, NotConnected, openSocket } from './web-connect.ts';

/** Bytes of a reply that are read, at most, where nothing else is said. */
export const MAX_REPLY_BYTES = 8 * 1024 * 1024;

export interface HttpRequest {
  readonly method: string;
  /** As it stands on the request line. */
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
  /** The exact bytes; `null`: no body. */
  readonly body: Buffer | null;
}

export interface Reply {
  readonly kind: 'reply';
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** What arrived of the body. */
  readonly bytes: Buffer;
  /** Why the body is not the whole one; `null`: it is. */
  readonly cut: string | null;
  /** False where only the connection's end marks the body's end, so that a cut shows only in what is missing. */
  readonly framed: boolean;
  /** False where the reply was complete before the request had left whole. */
  readonly requestLeft: boolean;
}

export type Exchange =
  | Reply
  /** No byte of the request can have left. */
  | { readonly kind: 'not-sent'; readonly code: string }
  /** Bytes may have left, and no status came back. */
  | { readonly kind: 'lost'; readonly code: string };

export interface TransportSettings extends Endpoint {
  readonly timeoutMs: number;
  readonly keepAliveMs: number;
  /** Bytes of a reply's body that are read, at most. */
  readonly maxReplyBytes?: number;
}

export class HttpTransport {
  readonly #settings: TransportSettings;
  readonly #agent: ConnectedAgent;
  readonly #signal: AbortSignal;
  /** Ends each request under way; one listener for all, however many there are. */
  readonly #running = new Set<() => void>();
  readonly #onAbort = () => {
    for (const cancel of this.#running) cancel();
  };

  /** `signal` ends every request of this transport, those to come included. */
  constructor(settings: TransportSettings, signal: AbortSignal) {
    this.#settings = settings;
    this.#agent = new ConnectedAgent(settings, settings.keepAliveMs);
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort);
  }

  /** Resolves and connects, TLS included, and sends nothing. Returns a code where that fails. */
  async probe(): Promise<string | null> {
    try {
      (await openSocket(this.#settings)).destroy();
      return null;
    } catch (error) {
      if (error instanceof NotConnected) return error.code;
      throw error;
    }
  }

  exchange(request: HttpRequest): Promise<Exchange> {
    if (this.#signal.aborted) return Promise.resolve({ kind: 'not-sent', code: 'cancelled' });
    const { url } = this.#settings;
    const send = url.protocol === 'https:' ? secureRequest : plainRequest;
    const outgoing = send({
      agent: this.#agent,
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port,
      method: request.method,
      path: request.path,
      headers: headersOf(request, url),
      setHost: false,
    });
    const exchange = watch(outgoing, this.#settings, this.#running);
    outgoing.end(request.body ?? undefined);
    return exchange;
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#agent.destroy();
  }
}

function headersOf(request: HttpRequest, url: URL): { [name: string]: string } {
  const length = request.body === null ? {} : { 'content-length': String(request.body.length) };
  return { ...request.headers, ...length, host: url.host, 'accept-encoding': 'identity' };
}

/** Follows one request to its end. The first of reply, failure, time limit and abort decides. */
function watch(
  outgoing: ClientRequest,
  { timeoutMs, maxReplyBytes = MAX_REPLY_BYTES }: TransportSettings,
  running: Set<() => void>,
): Promise<Exchange> {
  return new Promise((resolve) => {
    let mayHaveLeft = false;
    let settled = false;
    let body: ReplyBody | null = null;
    const settle = (exchange: Exchange) => {
      settled = true;
      clearTimeout(timer);
      running.delete(cancel);
      resolve(exchange);
    };
    const stop = (code: string) => {
      if (settled) return; // its socket may serve another request by now
      if (body !== null) settle(body.reply(code));
      else settle({ kind: mayHaveLeft ? 'lost' : 'not-sent', code });
      outgoing.destroy();
    };
    const timer = setTimeout(() => stop(mayHaveLeft ? 'request-timeout' : 'connect-timeout'), timeoutMs);
    const cancel = () => stop('cancelled');
    running.add(cancel);
    outgoing.on('socket', () => {
      mayHaveLeft = true;
    });
    outgoing.on('error', (error) => stop(error instanceof NotConnected ? error.code : lossCode(error)));
    // Without an error and without a response, where the server changes protocols unasked.
    outgoing.on('close', () => {
      if (body === null) stop('connection-lost');
    });
    outgoing.on('response', (incoming) => {
      const reading = new ReplyBody(incoming, outgoing, maxReplyBytes);
      body = reading;
      reading.read((cut) => {
        if (cut !== null) stop(cut);
        else if (!settled) settle(reading.reply(null));
      });
    });
  });
}

/** Collects a reply's body within the byte limit. */
class ReplyBody {
  readonly #chunks: Buffer[] = [];
  #size = 0;

  constructor(
    readonly incoming: IncomingMessage,
    readonly outgoing: ClientRequest,
    readonly maxBytes: number,
  ) {}

  /** Calls `done` once with the reason why the body is not whole, or `null`. */
  read(done: (cut: string | null) => void): void {
    const { incoming } = this;
    incoming.on('data', (chunk: Buffer) => {
      this.#size += chunk.length;
      if (this.#size > this.maxBytes) done('reply-too-large');
      else this.#chunks.push(chunk);
    });
    incoming.on('end', () => done(incoming.complete ? null : 'reply-truncated'));
    incoming.on('error', () => done('reply-truncated'));
    incoming.on('close', () => done(incoming.complete ? null : 'reply-truncated'));
  }

  reply(cut: string | null): Reply {
    const { statusCode, headers } = this.incoming;
    return {
      kind: 'reply',
      status: statusCode ?? 0,
      headers,
      bytes: Buffer.concat(this.#chunks),
      cut,
      framed: headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined,
      requestLeft: this.outgoing.writableFinished,
    };
  }
}

function lossCode(error: unknown): string {
  const code = errorCode(error);
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'connection-reset';
  return code.startsWith('HPE_') ? 'reply-malformed' : 'connection-lost';
}
