/**
 * Opening a connection, as a step of its own: the request is handed a socket only once TCP and TLS stand, so that every
 * failure in here is known to have happened before the first byte of the request could leave.
 */

import { Agent } from 'node:http';
import { isIP, type Socket, connect as tcpConnect } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as tlsConnect } from 'node:tls';

export interface Endpoint {
  readonly url: URL;
  /** PEM certificates trusted in place of the well-known ones. */
  readonly ca: string | undefined;
  readonly connectTimeoutMs: number;
}

/** No connection, hence no request. The operating system's own words stay behind: only a code goes on. */
export class NotConnected extends Error {
  override readonly name = 'NotConnected';
  constructor(readonly code: string) {
    super(`no connection: ${code}`);
  }
}

/** The endpoint's host as `net` wants it: IPv6 without brackets. */
function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

/** @throws NotConnected, by rejection, when no verified connection stands within the time limit. */
export function openSocket(endpoint: Endpoint): Promise<Socket> {
  const { url, ca, connectTimeoutMs } = endpoint;
  const secure = url.protocol === 'https:';
  const host = hostOf(url);
  const port = Number(url.port === '' ? (secure ? 443 : 80) : url.port);
  return new Promise((resolve, reject) => {
    const socket = secure
      ? tlsConnect({
          host,
          port,
          ...(isIP(host) === 0 ? { servername: host } : {}),
          ...(ca === undefined ? {} : { ca }),
          ALPNProtocols: ['http/1.1'],
          minVersion: 'TLSv1.2',
          rejectUnauthorized: true, // stated, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn it off
        })
      : tcpConnect({ host, port });
    const fail = (code: string) => {
      clearTimeout(timer);
      socket.destroy();
      reject(new NotConnected(code));
    };
    const timer = setTimeout(() => fail('connect-timeout'), connectTimeoutMs);
    const onError = (error: Error) => fail(connectCode(error, secure));
    socket.on('error', onError);
    socket.once('close', () => fail('connect-failed'));
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer);
      socket.removeAllListeners('close');
      socket.off('error', onError);
      socket.setNoDelay(true);
      resolve(socket);
    });
  });
}

const CONNECT_CODES: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection-refused'],
  ['ENOTFOUND', 'dns-failed'],
  ['EAI_AGAIN', 'dns-failed'],
  ['ETIMEDOUT', 'connect-timeout'],
  ['EHOSTUNREACH', 'unreachable'],
  ['ENETUNREACH', 'unreachable'],
]);

function connectCode(error: Error, secure: boolean): string {
  const code = errorCode(error);
  return CONNECT_CODES.get(code) ?? (secure ? 'tls-failed' : 'connect-failed');
}

/** Node's code of an error, or `''`; the message, which may hold addresses, is never read. */
export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** Gives requests their sockets: an idle one, or one that {@link openSocket} has brought to its end. */
export class ConnectedAgent extends Agent {
  readonly protocol: string;
  readonly #endpoint: Endpoint;

  /** `keepAliveMs`: how long an idle socket may be used again; 0: never. */
  constructor(endpoint: Endpoint, keepAliveMs: number) {
    super({ keepAlive: keepAliveMs > 0, ...(keepAliveMs > 0 ? { timeout: keepAliveMs } : {}) });
    this.protocol = endpoint.url.protocol;
    this.#endpoint = endpoint;
  }

  override createConnection(
    _options: unknown,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    openSocket(this.#endpoint).then(
      (socket) => callback?.(null, socket),
      // Node's types want a socket here too; with an error it is not looked at.
      (error: Error) => (callback as ((error: Error) => void) | undefined)?.(error),
    );
    return undefined;
  }
}
