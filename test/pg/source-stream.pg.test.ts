/** How the PostgreSQL source streams: slow readers, lost connections, bounded memory. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PAGE_ROWS } from '../../src/sources/postgres/row-stream.ts';
import { postgresSource } from '../../src/sources/postgres/source.ts';
import { errorOf, readAll } from '../contract/source.contract.ts';
import { type PostgresHarness, startPostgresHarness } from '../contract/source-postgres-harness.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

let harness: PostgresHarness;
beforeAll(async () => {
  harness = await startPostgresHarness();
});
afterAll(() => harness.close());

const never = (): AbortSignal => new AbortController().signal;
const MANY = `SELECT n, md5(n::text) || repeat('x', 300) AS filler FROM generate_series(1, 300000) n`;

describe('streaming', () => {
  it('a slow reader never makes the transaction idle: 200 ms of idle time are enough for it', async () => {
    const config = { ...harness.config, idleInTransactionTimeoutMs: 200 };
    const snapshot = await postgresSource.open(config, harness.queries.items, never());
    let pages = 0;
    let rows = 0;
    for await (const page of snapshot.pages()) {
      pages += 1;
      rows += page.length;
      if (pages <= 3) await sleep(500);
    }
    expect(rows).toBe(5000);
  });

  it('read-dies-midway: a server that ends the idle transaction before the read is a lost source', async () => {
    const config = { ...harness.config, idleInTransactionTimeoutMs: 50 };
    const snapshot = await postgresSource.open(config, harness.queries.items, never());
    await sleep(300);
    const error = await errorOf(readAll(snapshot));
    expect(error.code).toBe('source.lost');
    expect(error.details).toEqual({ sqlstate: '25P03' });
  });

  it('a statement that takes longer than its limit is stopped by the server', async () => {
    const config = { ...harness.config, statementTimeoutMs: 100 };
    const error = await errorOf(readAll(await postgresSource.open(config, harness.queries.slow, never())));
    expect(error.code).toBe('source.timeout');
    expect(error.recourse).toBe('retry');
  });

  it('a lock that is not to be had is given up after its limit', async () => {
    await harness.admin.query('BEGIN; LOCK TABLE items IN ACCESS EXCLUSIVE MODE');
    try {
      const config = { ...harness.config, lockTimeoutMs: 50 };
      const error = await errorOf(postgresSource.open(config, harness.queries.items, never()));
      expect(error.code).toBe('source.timeout');
      expect(error.details).toEqual({ sqlstate: '55P03' });
    } finally {
      await harness.admin.query('ROLLBACK');
    }
  });

  it('rule 8, replica-switch: a read whose host dies is never continued on another host', async () => {
    const proxy = await startTcpProxy(harness.config);
    try {
      const config = { ...harness.config, host: proxy.host, port: proxy.port };
      const snapshot = await postgresSource.open(config, harness.queries.items, never());
      const reading = (async () => {
        for await (const _page of snapshot.pages()) {
          proxy.pointTo(harness.config); // the other host answers at once
          proxy.cut();
        }
      })();
      const error = await errorOf(reading);
      expect(error.code).toBe('source.lost');
      expect(proxy.accepted).toBe(1);
      await snapshot.close();
    } finally {
      await proxy.close();
    }
  });

  it.each([0.5, 0.9, 0.999])(
    'read-dies-midway: a connection cut after %f of the bytes is a lost source',
    async (share) => {
      const proxy = await startTcpProxy(harness.config);
      try {
        const config = { ...harness.config, host: proxy.host, port: proxy.port };
        await readAll(await postgresSource.open(config, harness.queries.items, never()));
        proxy.cutAfter(Math.floor(proxy.carried * share));
        const snapshot = await postgresSource.open(config, harness.queries.items, never());
        expect((await errorOf(readAll(snapshot))).code).toBe('source.lost');
      } finally {
        await proxy.close();
      }
    },
  );

  it('back-pressure: a reader that stands still makes the server stand still', async () => {
    const proxy = await startTcpProxy(harness.config);
    try {
      const config = { ...harness.config, host: proxy.host, port: proxy.port };
      const snapshot = await postgresSource.open(config, MANY, never());
      const pages = snapshot.pages()[Symbol.asyncIterator]();
      await pages.next();
      await sleep(500);
      const held = proxy.carried;
      await sleep(300);
      expect(proxy.carried).toBe(held);
      expect(held).toBeLessThan(20_000_000); // of more than 100 MB; most of it lies in the buffers of the sockets
      await snapshot.close();
    } finally {
      await proxy.close();
    }
  });

  it('300,000 rows pass a slow reader in bounded memory', async () => {
    const snapshot = await postgresSource.open(harness.config, MANY, never());
    const before = process.memoryUsage().rss;
    let peak = before;
    let rows = 0;
    for await (const page of snapshot.pages()) {
      expect(page.length).toBeLessThanOrEqual(PAGE_ROWS);
      rows += page.length;
      peak = Math.max(peak, process.memoryUsage().rss);
      await sleep(1);
    }
    expect(rows).toBe(300_000);
    expect((peak - before) / 1e6).toBeLessThan(80); // the rows are 100 MB on the wire, and twice that as strings
  });

  it('wide rows make short pages', async () => {
    const wide = `SELECT n, repeat('x', 1000000) AS filler FROM generate_series(1, 40) n`;
    const snapshot = await postgresSource.open(harness.config, wide, never());
    const sizes: number[] = [];
    for await (const page of snapshot.pages()) sizes.push(page.length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(5);
    expect(sizes.reduce((a, b) => a + b)).toBe(40);
  });

  it('the transaction ends with the last row, however long the reader takes over it', async () => {
    const snapshot = await postgresSource.open(harness.config, 'SELECT n FROM items LIMIT 1500', never());
    const pages = snapshot.pages()[Symbol.asyncIterator]();
    await pages.next();
    for (let i = 0; i < 100 && (await harness.sessions()) > 0; i++) await sleep(20);
    expect(await harness.sessions()).toBe(0);
    expect((await pages.next()).value).toHaveLength(500);
    expect((await pages.next()).done).toBe(true);
  });

  it('unordered-paging: functions that the query calls for each row see the same state as the query', async () => {
    await harness.admin.query(
      `CREATE FUNCTION version_sum() RETURNS bigint VOLATILE LANGUAGE sql AS 'SELECT sum(version) FROM items WHERE n < 100'`,
    );
    const query = 'SELECT n, version_sum(), padding FROM items ORDER BY n';
    const snapshot = await postgresSource.open(harness.config, query, never());
    const sums = new Set<string | null | undefined>();
    let changed = false;
    for await (const page of snapshot.pages()) {
      for (const row of page) sums.add(row[1]);
      if (!changed) await harness.change();
      changed = true;
    }
    await harness.restore();
    expect([...sums]).toEqual(['0']);
  });

  it('a snapshot is read once', async () => {
    const snapshot = await postgresSource.open(harness.config, harness.queries.nothing, never());
    await readAll(snapshot);
    await expect(readAll(snapshot)).rejects.toThrow('read once');
  });
});
