/**
 * PostgreSQL's CancelRequest: a connection of its own that carries only the number and the secret of the session whose
 * statement is to stop. The server answers by closing it. The driver's own way ignores TLS, hence this file.
 */

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { PostgresSourceConfig } from './config.ts';
import { isUnixSocket, tlsOptions } from './tls.ts';

export interface BackendKey {
  readonly processId: number;
  readonly secret: number;
}

const CANCEL_CODE = 80_877_102;
const TLS_CODE = 80_877_103;

/** Where the server listens, as Node's sockets want it. */
function address(config: PostgresSourceConfig): { path: string } | { host: string; port: number } {
  return isUnixSocket(config.host)
    ? { path: `${config.host}/.s.PGSQL.${config.port}` }
    : { host: config.host, port: config.port };
}

/** Asks the server to stop what the session does. Settles when the server has taken it, or after `limitMs`; never rejects. */
export function requestCancel(config: PostgresSourceConfig, key: BackendKey, limitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(address(config));
    const timer = setTimeout(() => socket.destroy(), limitMs);
    socket.on('error', () => socket.destroy()); // the session's own end does not depend on it
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.once('connect', () => send(socket, config, cancelMessage(key)));
  });
}

function send(socket: Socket, config: PostgresSourceConfig, message: Buffer): void {
  const tls = tlsOptions(config.tls);
  if (tls === false) {
    socket.end(message);
    return;
  }
  socket.write(words(8, TLS_CODE));
  socket.once('data', (answer: Buffer) => {
    if (answer.toString('latin1') !== 'S') return socket.destroy();
    const secured = connectTls({ ...tls, socket, host: config.host });
    secured.on('error', () => socket.destroy());
    secured.once('secureConnect', () => secured.end(message));
    return undefined;
  });
}

function cancelMessage(key: BackendKey): Buffer {
  return words(16, CANCEL_CODE, key.processId, key.secret);
}

function words(...values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => {
    buffer.writeInt32BE(value, i * 4);
  });
  return buffer;
}
