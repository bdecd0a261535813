/** What every source must do, whatever system it reads. Run it with a harness that knows how to provoke each case. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RetlError } from '../../src/domain/errors.ts';
import type { RawRow } from '../../src/domain/source-row.ts';
import type { SourceAdapter, SourceSnapshot } from '../../src/sources/port.ts';

/** One source system with a table `items` of 5,000 rows: n from 1 to 5,000, label `row <n>`, version 0. */
export interface SourceHarness<Config> {
  readonly adapter: SourceAdapter<Config>;
  readonly config: Config;
  /** A place where nothing listens. */
  readonly unreachable: Config;
  /** A password that must not show up in any error. */
  readonly secret: string;
  readonly queries: {
    /** n, label, version of every item by n; long enough rows that 5,000 do not fit the buffers in between. */
    readonly items: string;
    /** The columns of `items`, no row. */
    readonly nothing: string;
    /** One row: a NULL and an empty text. */
    readonly nullAndEmpty: string;
    readonly duplicateColumns: string;
    /** Names a table that is not there. */
    readonly unknownTable: string;
    /** Would change data. */
    readonly writing: string;
    /** Computes for a minute before its first row. */
    readonly slow: string;
    /** Gives rows, then an error of the server, after a thousand rows at least. */
    readonly failsLate: string;
  };
  /** Adds 1 to the version of every second item, deletes item 1 and adds item 5,001; committed when it resolves. */
  change(): Promise<void>;
  /** Takes back `change`. */
  restore(): Promise<void>;
  /** Sessions that the adapter has open on the server, this harness's own ones left out. */
  sessions(): Promise<number>;
  /** Ends the adapter's sessions from the server's side. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

const ITEMS = 5_000;
const never = (): AbortSignal => new AbortController().signal;

export async function readAll(snapshot: SourceSnapshot): Promise<RawRow[]> {
  const rows: RawRow[] = [];
  for await (const page of snapshot.pages()) rows.push(...page);
  return rows;
}

/** The error that a promise must end with. */
export async function errorOf(promise: Promise<unknown>): Promise<RetlError> {
  const error: unknown = await promise.then(
    () => new Error('nothing was thrown'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof RetlError)) throw error;
  return error;
}

export function sourceContract<Config>(name: string, start: () => Promise<SourceHarness<Config>>): void {
  describe(`source contract: ${name}`, () => {
    let harness: SourceHarness<Config>;
    beforeAll(async () => {
      harness = await start();
    });
    afterAll(() => harness?.close());

    const open = (query: string, signal = never()): Promise<SourceSnapshot> =>
      harness.adapter.open(harness.config, query, signal);

    /** The server forgets a session a moment after its socket is closed. */
    async function noSessionLeft(withinMs = 5_000): Promise<void> {
      const deadline = Date.now() + withinMs;
      while ((await harness.sessions()) > 0 && Date.now() < deadline) await sleep(20);
      expect(await harness.sessions()).toBe(0);
    }

    it('gives every row once, in the order of the query, in pages', async () => {
      const snapshot = await open(harness.queries.items);
      const sizes: number[] = [];
      const numbers: string[] = [];
      for await (const page of snapshot.pages()) {
        sizes.push(page.length);
        for (const row of page) numbers.push(row[0] ?? 'NULL');
      }
      expect(numbers).toEqual(Array.from({ length: ITEMS }, (_, i) => String(i + 1)));
      expect(sizes.length).toBeGreaterThan(1);
      expect(Math.min(...sizes)).toBeGreaterThan(0);
      await noSessionLeft();
    });

    it('rule 7: an empty result is a complete snapshot with columns and without rows', async () => {
      const snapshot = await open(harness.queries.nothing);
      expect(snapshot.columns.map((column) => column.name)).toEqual(['n', 'label', 'version']);
      expect(await readAll(snapshot)).toEqual([]);
      await noSessionLeft();
    });

    it('null-clears: NULL is not the empty text', async () => {
      const rows = await readAll(await open(harness.queries.nullAndEmpty));
      expect(rows).toEqual([[null, '']]);
    });

    it('ragged-rows: every row has as many values as there are columns', async () => {
      const snapshot = await open(harness.queries.items);
      const rows = await readAll(snapshot);
      expect(new Set(rows.map((row) => row.length))).toEqual(new Set([snapshot.columns.length]));
    });

    it('unordered-paging: changes during the read are not seen', async () => {
      const snapshot = await open(harness.queries.items);
      await harness.change();
      try {
        const rows = await readAll(snapshot);
        expect(rows.length).toBe(ITEMS);
        expect(rows.map((row) => row[0])).toContain('1');
        expect(new Set(rows.map((row) => row[2]))).toEqual(new Set(['0']));
      } finally {
        await harness.restore();
      }
    });

    it('describes the columns as open gives them, and leaves nothing open', async () => {
      const described = await harness.adapter.describe(harness.config, harness.queries.items, never());
      const snapshot = await open(harness.queries.items);
      const named = (columns: SourceSnapshot['columns']) => columns.map((c) => `${c.name} ${c.typeName}`);
      expect(named(described)).toEqual(named(snapshot.columns));
      await snapshot.close();
      await noSessionLeft();
    });

    it.each(['open', 'describe'] as const)(
      '%s refuses two columns of one name, and says which',
      async (how) => {
        const error = await errorOf(
          harness.adapter[how](harness.config, harness.queries.duplicateColumns, never()),
        );
        expect(error.code).toBe('source.duplicate-column');
        expect(error.details).toEqual({ column: 'n' });
        await noSessionLeft();
      },
    );

    it.each(['open', 'describe'] as const)('%s refuses a query that the server refuses', async (how) => {
      const error = await errorOf(
        harness.adapter[how](harness.config, harness.queries.unknownTable, never()),
      );
      expect(error.code).toBe('source.query');
      expect(error.recourse).toBe('fix');
      await noSessionLeft();
    });

    it('refuses a query that writes, and changes nothing', async () => {
      const error = await errorOf(open(harness.queries.writing).then(readAll));
      expect(error.code).toBe('source.query');
      expect(await readAll(await open(harness.queries.items))).toHaveLength(ITEMS);
      await noSessionLeft();
    });

    it('says that a source which is not there may come back', async () => {
      const error = await errorOf(harness.adapter.open(harness.unreachable, harness.queries.items, never()));
      expect(error.code).toBe('source.connect');
      expect(error.recourse).toBe('retry');
      expect(`${error.message} ${error.stack}`).not.toContain(harness.secret);
    });

    it('read-dies-midway: a session ended by the server at 60 % throws, and never ends quietly', async () => {
      const snapshot = await open(harness.queries.items);
      let rows = 0;
      const reading = (async () => {
        for await (const page of snapshot.pages()) {
          const before = rows;
          rows += page.length;
          if (before < ITEMS * 0.6 && rows >= ITEMS * 0.6) await harness.kill();
        }
      })();
      const error = await errorOf(reading);
      expect(error.code).toBe('source.lost');
      expect(error.recourse).toBe('retry');
      expect(rows).toBeGreaterThanOrEqual(ITEMS * 0.6);
      expect(rows).toBeLessThan(ITEMS);
      await snapshot.close();
      await noSessionLeft();
    });

    it('read-dies-midway: a session ended before the first page throws', async () => {
      const snapshot = await open(harness.queries.items);
      await harness.kill();
      expect((await errorOf(readAll(snapshot))).code).toBe('source.lost');
    });

    it('read-dies-midway: an error of the server after some rows is never the end of the rows', async () => {
      const snapshot = await open(harness.queries.failsLate);
      expect((await errorOf(readAll(snapshot))).code).toMatch(/^source\./);
      await snapshot.close();
      await noSessionLeft();
    });

    it('closes at any time and more than once', async () => {
      const unread = await open(harness.queries.items);
      await Promise.all([unread.close(), unread.close()]);
      await unread.close();
      const half = await open(harness.queries.items);
      for await (const page of half.pages()) {
        expect(page.length).toBeGreaterThan(0);
        await half.close();
        break;
      }
      await half.close();
      const whole = await open(harness.queries.items);
      await readAll(whole);
      await whole.close();
      await noSessionLeft();
    });

    it('leaving the loop frees the connection', async () => {
      for await (const _page of (await open(harness.queries.items)).pages()) break;
      await noSessionLeft();
    });

    it('cursor-leak: 50 aborts at row 10 leave no session open', async () => {
      for (let i = 0; i < 50; i++) {
        const abort = new AbortController();
        const reason = new Error('stop');
        const snapshot = await open(harness.queries.items, abort.signal);
        const reading = (async () => {
          for await (const page of snapshot.pages())
            for (const row of page) if (row[0] === '10') abort.abort(reason);
        })();
        await expect(reading).rejects.toBe(reason);
        await snapshot.close();
      }
      await noSessionLeft();
    });

    it('after an abort no page is handed out, not even one that has arrived', async () => {
      const abort = new AbortController();
      const snapshot = await open(harness.queries.items, abort.signal);
      let pages = 0;
      const reading = (async () => {
        for await (const _page of snapshot.pages()) {
          pages += 1;
          await sleep(100); // the next page arrives meanwhile
          abort.abort(new Error('stop'));
        }
      })();
      await expect(reading).rejects.toThrow('stop');
      expect(pages).toBe(1);
      await noSessionLeft();
    });

    it('an abort stops a query that has not given a row yet, on the server too', async () => {
      const abort = new AbortController();
      const reason = new Error('stop');
      const snapshot = await open(harness.queries.slow, abort.signal);
      const reading = readAll(snapshot);
      setTimeout(() => abort.abort(reason), 100);
      await expect(reading).rejects.toBe(reason);
      await noSessionLeft(2_000);
    });

    it('an abort before opening opens nothing', async () => {
      const reason = new Error('stop');
      await expect(open(harness.queries.items, AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(await harness.sessions()).toBe(0);
    });
  });
}
