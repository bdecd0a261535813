/** One request is sent at most once, and what its failure proves depends on whether a byte can have left (rule 3). */

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { BatchOutcome } from '../../src/destinations/port.ts';
import { FakeAudience, type Fault } from '../support/fake-audience.ts';
import { members, openWriter, PATH, PER_ROW, type Written } from '../support/fake-audience-writer.ts';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '../support/localhost-certificate.ts';

let fake: FakeAudience;
const servers: Server[] = [];

beforeAll(async () => {
  fake = await FakeAudience.start();
});
beforeEach(() => fake.reset());
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});
afterAll(() => fake.stop());

async function send(url: string, written: Written = {}): Promise<BatchOutcome> {
  const { writer, request } = await openWriter(url, written);
  try {
    return await writer.upsert(request('upsert', members(3)));
  } finally {
    await writer.close();
  }
}

/** A server that hands each connection to `serve`; resolves to its port. */
async function rawServer(serve: (socket: Socket) => void): Promise<number> {
  const server = createServer();
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => undefined);
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

const withFault = (fault: Fault, written: Written = {}) => {
  fake.fault(fault);
  return send(fake.url, written);
};

describe('before a byte can have left, nothing is applied', () => {
  test('refused connection', async () => {
    expect(await send('http://127.0.0.1:1')).toEqual({
      kind: 'not-applied',
      code: 'connection-refused',
      retryAfterMs: null,
      tooLarge: false,
    });
  });

  test('a host without an address', async () => {
    expect(await send('https://no-such-host.invalid')).toMatchObject({
      kind: 'not-applied',
      code: 'dns-failed',
    });
  });

  test('a handshake that never ends', async () => {
    const port = await rawServer(() => undefined);
    const connection = { connect_timeout_ms: 100 };
    expect(await send(`https://localhost:${port}`, { connection })).toMatchObject({
      kind: 'not-applied',
      code: 'connect-timeout',
    });
  });

  test('a server that speaks no TLS', async () => {
    const port = await rawServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    expect(await send(`https://localhost:${port}`)).toMatchObject({
      kind: 'not-applied',
      code: 'tls-failed',
    });
  });

  test('a request that is cancelled before it begins', async () => {
    const signal = AbortSignal.abort();
    expect(await send(fake.url, { context: { signal } })).toMatchObject({
      kind: 'not-applied',
      code: 'cancelled',
    });
    expect(fake.requests).toHaveLength(0);
  });

  test.each([
    ['an unknown authority', {}, 'localhost'],
    ['a certificate for another name', { tls: { ca: LOCALHOST_CERTIFICATE } }, '127.0.0.1'],
  ])('%s, and no byte of the request reaches the server', async (_, connection, host) => {
    const received: Buffer[] = [];
    const server = createTlsServer({ cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY });
    server.on('secureConnection', (socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => received.push(chunk));
    });
    server.on('tlsClientError', () => undefined);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    const { port } = server.address() as AddressInfo;
    expect(await send(`https://${host}:${port}`, { connection })).toMatchObject({
      kind: 'not-applied',
      code: 'tls-failed',
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(received).toEqual([]);
  });

  test('with its authority named, the same server is trusted', async () => {
    const server = createTlsServer({ cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY });
    server.on('secureConnection', (socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}'));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    const { port } = server.address() as AddressInfo;
    const connection = { tls: { ca: LOCALHOST_CERTIFICATE } };
    expect((await send(`https://localhost:${port}`, { connection })).kind).toBe('accepted');
  });
});

describe('after that, a lost answer is unknown', () => {
  test.each([true, false])(
    'blind-replay: a reset (applied: %s) is unknown and there is no second POST',
    async (applied) => {
      expect(await withFault({ kind: 'reset', applied })).toEqual({
        kind: 'unknown',
        code: 'connection-reset',
      });
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect(fake.requests).toHaveLength(1);
      expect(fake.state.effects).toHaveLength(applied ? 3 : 0);
    },
  );

  test('blind-replay: a reply after the time limit, and a 502 of a proxy, are unknown', async () => {
    const connection = { timeout_ms: 100 };
    expect(await withFault({ kind: 'delay', ms: 1_000 }, { connection })).toEqual({
      kind: 'unknown',
      code: 'request-timeout',
    });
    expect(await withFault({ kind: 'status', status: 502, body: '<html>', applied: true })).toEqual({
      kind: 'unknown',
      code: 'http-502',
    });
    expect(fake.requests).toHaveLength(2);
  });

  test('blind-replay: what is unknown stays so with manual recovery, and is sent again, to the byte, when declared idempotent', async () => {
    for (const idempotent of [false, true]) {
      fake.reset();
      const options = { idempotent, idempotency: { header: 'Idempotency-Key' } };
      const { writer, request } = await openWriter(fake.url, { options });
      const batch = request('upsert', members(3));
      fake.fault({ kind: 'reset', applied: true });
      expect((await writer.upsert(batch)).kind).toBe('unknown');
      const resolved = await writer.reconcileBatch(batch, null);
      await writer.close();
      expect(resolved.kind).toBe(idempotent ? 'accepted' : 'unknown');
      expect(fake.requests.map(({ body }) => body)).toEqual(Array(idempotent ? 2 : 1).fill(batch.body));
      expect(fake.requests.map(({ headers }) => headers['idempotency-key'])).toEqual(
        Array(idempotent ? 2 : 1).fill(batch.idempotencyKey),
      );
      expect(fake.state.effects).toHaveLength(3);
    }
  });

  test.each([
    [429, 'not-applied'],
    [400, 'refused'],
    [401, 'misconfigured'],
    [409, 'unknown'],
    [503, 'unknown'],
  ])('a %i to the second sending is answered for that copy: %s', async (status, kind) => {
    const { writer, request } = await openWriter(fake.url, { options: { idempotent: true } });
    const batch = request('upsert', members(3));
    fake.fault({ kind: 'reset', applied: true });
    await writer.upsert(batch);
    fake.fault({ kind: 'status', status });
    expect((await writer.reconcileBatch(batch, null)).kind).toBe(kind);
    await writer.close();
  });

  test('a truncated 2xx', async () => {
    expect(await withFault({ kind: 'truncate' })).toEqual({ kind: 'unknown', code: 'reply-truncated' });
  });

  test('a reply that drips in for ever ends at the time limit', async () => {
    const connection = { timeout_ms: 200 };
    expect(await withFault({ kind: 'drip', everyMs: 50 }, { connection })).toEqual({
      kind: 'unknown',
      code: 'request-timeout',
    });
  });

  test('a 429 whose body is cut is a 429', async () => {
    const text = 'HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 100\r\n\r\nslow';
    expect(await withFault({ kind: 'raw', text })).toMatchObject({
      kind: 'not-applied',
      retryAfterMs: 3_000,
    });
  });

  test.each([
    ['no HTTP at all', 'SSH-2.0-OpenSSH\r\n', 'reply-malformed'],
    ['a success whose end nobody marks', 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n', 'reply-truncated'],
    [
      'a chunk that is cut',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"o',
      'reply-truncated',
    ],
    ['nothing', '', 'connection-reset'],
  ])('%s', async (_, text, code) => {
    expect(await withFault({ kind: 'raw', text })).toEqual({ kind: 'unknown', code });
  });

  test('a success that comes before the request has left whole', async () => {
    const port = await rawServer((socket) => {
      socket.pause();
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}');
    });
    const { writer, request } = await openWriter(`http://127.0.0.1:${port}`);
    const batch = request('upsert', members(3));
    const outcome = await writer.upsert({ ...batch, body: batch.body.padEnd(32 * 1024 * 1024) });
    await writer.close();
    expect(outcome).toEqual({ kind: 'unknown', code: 'reply-before-request' });
  });

  test('a reply of more than 8 MB', async () => {
    const body = 'x'.repeat(9 * 1024 * 1024);
    expect(await withFault({ kind: 'status', status: 200, body })).toEqual({
      kind: 'unknown',
      code: 'reply-too-large',
    });
  });

  test('a reply that unpacks to more than 8 MB', async () => {
    const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024));
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`;
    const port = await rawServer((socket) => {
      socket.once('data', () => {
        socket.write(head);
        socket.end(bomb);
      });
    });
    expect(await send(`http://127.0.0.1:${port}`)).toEqual({ kind: 'unknown', code: 'reply-undecodable' });
  });

  test('cancel-late: a cancelled request in flight is unknown', async () => {
    const control = new AbortController();
    fake.fault({ kind: 'delay', ms: 5_000 });
    const sending = send(fake.url, { context: { signal: control.signal } });
    setTimeout(() => control.abort(), 50);
    expect(await sending).toEqual({ kind: 'unknown', code: 'cancelled' });
  });
});

describe('connections', () => {
  test('an idle connection that the server closes as it is used again makes one unknown request, not two', async () => {
    const bodies: string[] = [];
    const port = await rawServer((socket) => {
      let answered = false;
      socket.on('data', (chunk) => {
        bodies.push(chunk.toString());
        if (answered) socket.resetAndDestroy();
        else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"ok":true}');
        answered = true;
      });
    });
    const { writer, request } = await openWriter(`http://127.0.0.1:${port}`);
    expect((await writer.upsert(request('upsert', members(1)))).kind).toBe('accepted');
    expect(await writer.upsert(request('upsert', members(2)))).toEqual({
      kind: 'unknown',
      code: 'connection-reset',
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    await writer.close();
    expect(bodies).toHaveLength(2);
  });

  test.each([
    ['used again while young', { keep_alive_ms: 1_000 }, 0, 1],
    ['not used again once it has idled too long', { keep_alive_ms: 30 }, 150, 2],
    ['never used again with keep_alive_ms 0', { keep_alive_ms: 0 }, 0, 2],
  ])('a connection is %s', async (_, connection, pauseMs, connections) => {
    const { writer, request } = await openWriter(fake.url, { connection });
    await writer.upsert(request('upsert', members(1)));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    await writer.upsert(request('upsert', members(2)));
    await writer.close();
    expect(new Set(fake.requests.map((seen) => seen.connection)).size).toBe(connections);
  });

  test('several requests at once keep their answers apart', async () => {
    const { writer, request } = await openWriter(fake.url, { options: { outcomes: PER_ROW } });
    const requests = Array.from({ length: 20 }, (_, n) => request('upsert', members(1 + (n % 5))));
    const outcomes = await Promise.all(requests.map((one) => writer.upsert(one)));
    await writer.close();
    expect(outcomes.map((o) => (o.kind === 'settled' ? o.outcomes.length : 0))).toEqual(
      requests.map(({ operations }) => operations.length),
    );
  });
});

test('a compressed reply is read', async () => {
  const body = gzipSync('{"ok":true}');
  const port = await rawServer((socket) => {
    socket.once('data', () => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`);
      socket.end(body);
    });
  });
  expect((await send(`http://127.0.0.1:${port}`)).kind).toBe('accepted');
});

describe('preflight', () => {
  test('only connects where there is nothing to read, and reads where there is', async () => {
    const plain = await openWriter(fake.url);
    expect(await plain.writer.preflight()).toEqual([]);
    await plain.writer.close();
    expect(fake.requests).toHaveLength(0);
    const reading = await openWriter(fake.url, {
      options: { verify_empty: { path: PATH, list: '/members' } },
    });
    expect(await reading.writer.preflight()).toEqual([]);
    expect(await reading.writer.checkEmpty()).toEqual({ kind: 'empty' });
    await reading.writer.close();
    expect(fake.requests.map(({ method }) => method)).toEqual(['GET', 'GET']);
  });

  test('says what is wrong, in words and without values', async () => {
    const { writer } = await openWriter('http://127.0.0.1:1');
    expect(await writer.preflight()).toMatchObject([
      { code: 'connection-refused', message: 'The API cannot be reached.' },
    ]);
    expect(await writer.checkEmpty()).toEqual({ kind: 'cannot-look' });
    await writer.close();
  });
});
