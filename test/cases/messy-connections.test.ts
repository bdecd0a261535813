/** Connections that are used again: a reply that was not asked for is nobody's. */

import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { HttpTransport } from '../../src/destinations/web-transport.ts';

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

async function api(): Promise<{ readonly url: URL; readonly sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((incoming, outgoing) => {
    incoming.resume();
    incoming.on('end', () => outgoing.end(`"${incoming.url}"`));
  });
  server.on('connection', (socket: Socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(
    () => server.closeAllConnections(),
    () => void server.close(),
  );
  return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), sockets };
}

function transportTo(url: URL): HttpTransport {
  const settings = { url, ca: undefined, connectTimeoutMs: 2_000, timeoutMs: 2_000, keepAliveMs: 30_000 };
  const transport = new HttpTransport(settings, new AbortController().signal);
  cleanups.push(() => transport.close());
  return transport;
}

const post = (path: string) => ({ method: 'POST', path, headers: {}, body: Buffer.from('[]') });

test.each([
  ['a 200', 'HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n"stale!"'],
  ['a 408 before closing', 'HTTP/1.0 408 Request Time-out\r\nconnection: close\r\n\r\n'],
  ['half a reply', 'HTTP/1.1 200 OK\r\ncontent-le'],
])('%s on an idle connection is not the answer to the next request', async (_, text) => {
  const { url, sockets } = await api();
  const transport = transportTo(url);
  expect(await transport.exchange(post('/first'))).toMatchObject({ kind: 'reply', status: 200 });
  sockets[0]?.write(text);
  await sleep(50);
  const second = await transport.exchange(post('/second'));
  expect(second).toMatchObject({ kind: 'reply', status: 200 });
  expect(second.kind === 'reply' && second.bytes.toString()).toBe('"/second"');
});
