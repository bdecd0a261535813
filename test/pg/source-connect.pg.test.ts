/** Connections that cannot be had: which of them may come back, and which need another configuration. */

import { createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PostgresSourceConfig } from '../../src/sources/postgres/config.ts';
import { postgresSource } from '../../src/sources/postgres/source.ts';
import { errorOf, readAll } from '../contract/source.contract.ts';
import { configOf, type PostgresHarness, startPostgresHarness } from '../contract/source-postgres-harness.ts';
import { startTlsFront, TEST_CA, type TlsFront } from '../contract/source-tls-front.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

let harness: PostgresHarness;
let proxy: TcpProxy;
let front: TlsFront;
beforeAll(async () => {
  harness = await startPostgresHarness();
  proxy = await startTcpProxy(harness.config);
  front = await startTlsFront(harness.config);
  await harness.admin.query(
    'CREATE ROLE source_full LOGIN CONNECTION LIMIT 0; CREATE ROLE source_nologin NOLOGIN',
  );
});
afterAll(async () => {
  await harness.admin.query('DROP ROLE source_full; DROP ROLE source_nologin');
  await front.close();
  await proxy.close();
  await harness.close();
});
afterEach(() => {
  proxy.refuse(false);
  proxy.resume();
  proxy.cut();
});

const never = (): AbortSignal => new AbortController().signal;
const connect = (extra: Partial<PostgresSourceConfig>) =>
  postgresSource.describe({ ...harness.config, ...extra }, 'SELECT 1 AS a', never());
const tls = (mode: PostgresSourceConfig['tls']['mode'], ca: string | null = null) => ({
  mode,
  ca,
  cert: null,
  key: null,
});

/** Answers every greeting with PostgreSQL's ErrorResponse. */
async function startRefusingServer(sqlstate: string, words: string) {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${sqlstate}\0M${words}\0\0`);
  const head = Buffer.from([0x45, 0, 0, 0, fields.length + 4]);
  const server = createServer((client) => {
    client.on('error', () => client.destroy());
    client.once('data', () => client.end(Buffer.concat([head, fields])));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no TCP address');
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { port: address.port, close };
}

describe('connections that cannot be had', () => {
  it.each([
    [{ port: 1 }, 'source.connect', 'retry', { cause: 'ECONNREFUSED' }],
    [
      { host: 'no-such-host.invalid' },
      'source.connect',
      'retry',
      { cause: expect.stringMatching(/^E(NOTFOUND|AI_AGAIN)$/) },
    ],
    [{ host: '/no/such/folder' }, 'source.connect', 'retry', { cause: 'ENOENT' }],
    [{ database: 'no_such_database' }, 'source.auth', 'fix', { sqlstate: '3D000' }],
    [{ user: 'source_nologin' }, 'source.auth', 'fix', { sqlstate: '28000' }],
    [{ user: 'source_full' }, 'source.connect', 'retry', { sqlstate: '53300' }],
    [{ tls: tls('require') }, 'source.tls', 'fix', { cause: 'server-without-tls' }],
  ] as const)('%j is %s: %s', async (extra, code, recourse, details) => {
    const error = await errorOf(connect(extra));
    expect(error.code).toBe(code);
    expect(error.recourse).toBe(recourse);
    expect(error.details).toEqual(details);
    expect(`${error.message} ${error.stack}`).not.toContain(harness.secret);
  });

  it.each([
    ['28P01', 'source.auth', 'fix'],
    ['42501', 'source.auth', 'fix'],
    ['53300', 'source.connect', 'retry'],
    ['57P03', 'source.connect', 'retry'],
    ['XX000', 'source.connect', 'retry'],
  ])(
    'leaks: a server that greets with SQLSTATE %s is %s, without its words',
    async (sqlstate, code, recourse) => {
      const refusing = await startRefusingServer(sqlstate, 'no entry for 4711');
      try {
        const error = await errorOf(connect({ port: refusing.port }));
        expect(error.code).toBe(code);
        expect(error.recourse).toBe(recourse);
        expect(error.details).toEqual({ sqlstate });
        expect(`${error.message} ${error.stack}`).not.toContain('4711');
      } finally {
        await refusing.close();
      }
    },
  );

  it('a server that says nothing is given up after the connect timeout', async () => {
    proxy.freeze();
    const error = await errorOf(connect({ host: proxy.host, port: proxy.port, connectTimeoutMs: 100 }));
    expect(error.code).toBe('source.connect');
    expect(error.details).toEqual({ cause: 'timeout' });
  });

  it('a server that closes the door at once may come back', async () => {
    proxy.refuse(true);
    const error = await errorOf(connect({ host: proxy.host, port: proxy.port }));
    expect(error.code).toBe('source.connect');
    expect(error.recourse).toBe('retry');
  });

  it('an abort ends the wait for a server that says nothing', async () => {
    proxy.freeze();
    const abort = new AbortController();
    const reason = new Error('stop');
    const config = { ...harness.config, host: proxy.host, port: proxy.port };
    setTimeout(() => abort.abort(reason), 50);
    await expect(postgresSource.open(config, 'SELECT 1 AS a', abort.signal)).rejects.toBe(reason);
  });
});

describe('TLS', () => {
  it('verify-full reads through a verified connection, and cancels through one', async () => {
    const config = {
      ...harness.config,
      host: 'localhost',
      port: front.port,
      tls: tls('verify-full', TEST_CA),
    };
    const before = front.secured;
    const rows = await readAll(await postgresSource.open(config, harness.queries.items, never()));
    expect(rows).toHaveLength(5000);
    expect(front.secured).toBe(before + 1);
    const abort = new AbortController();
    const reading = readAll(await postgresSource.open(config, harness.queries.slow, abort.signal));
    abort.abort(new Error('stop'));
    await expect(reading).rejects.toThrow('stop');
    expect(front.secured).toBe(before + 3);
  });

  it.each([
    ['localhost', tls('verify-full'), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['localhost', tls('verify-ca'), 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
    ['127.0.0.1', tls('verify-full', TEST_CA), 'ERR_TLS_CERT_ALTNAME_INVALID'],
  ] as const)('a server %s that cannot prove itself is refused (%j)', async (host, settings, cause) => {
    const error = await errorOf(connect({ host, port: front.port, tls: settings }));
    expect(error.code).toBe('source.tls');
    expect(error.recourse).toBe('fix');
    expect(error.details).toEqual({ cause });
  });

  it.each([
    ['127.0.0.1', tls('verify-ca', TEST_CA)],
    ['127.0.0.1', tls('require')],
  ])('%s with %j asks for less, and gets through', async (host, settings) => {
    expect(await connect({ host, port: front.port, tls: settings })).toHaveLength(1);
  });

  it('a host elsewhere is verified unless the user writes otherwise', () => {
    expect(configOf('postgres://u@db.example.com/d').tls.mode).toBe('verify-full');
  });
});
