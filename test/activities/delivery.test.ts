/** The parts of delivery that decide or wait without a destination: ends, waits, the drain limit, grouped settlements. */

import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import type pg from 'pg';
import { describe, expect, test } from 'vitest';
import { DrainLimit } from '../../src/activities/delivery/drain.ts';
import { graver, type WindowEnd } from '../../src/activities/delivery/ends.ts';
import { backoffMs, receiptText } from '../../src/activities/delivery/policy.ts';
import { Settlements } from '../../src/activities/delivery/settlements.ts';
import type { BatchId } from '../../src/domain/ids.ts';
import { epoch, runId, sha256FromHex } from '../../src/domain/ids.ts';
import type { Settlement } from '../../src/journal/batches.ts';

function batchOf(n: number): BatchId {
  return sha256FromHex(n.toString(16).padStart(64, '0')) as unknown as BatchId;
}

describe('why a window ends, where several requests in flight have a reason', () => {
  const end = fc.oneof(
    fc.constantFrom<WindowEnd>({ kind: 'done' }, { kind: 'more' }, { kind: 'stopped' }),
    fc.constantFrom<WindowEnd>({ kind: 'rejected', code: 'a' }, { kind: 'misconfigured', code: 'b' }),
    fc.constant<WindowEnd>({ kind: 'blocked', code: 'c', batch: batchOf(1) }),
    fc.nat().map((ms): WindowEnd => ({ kind: 'wait', code: 'd', ms, batch: batchOf(2) })),
    fc.nat().map((ms): WindowEnd => ({ kind: 'pending', code: 'e', ms, batch: batchOf(3), ageMs: 9 })),
  );
  const worst = (ends: readonly WindowEnd[]) => ends.reduce<WindowEnd | null>(graver, null);
  const order = ['done', 'more', 'stopped', 'wait', 'pending', 'misconfigured', 'rejected', 'blocked'];

  test('the gravest wins, in whatever order they come', () => {
    fc.assert(
      fc.property(fc.array(end, { minLength: 1 }), (ends) => {
        const gravest = Math.max(...ends.map((e) => order.indexOf(e.kind)));
        expect(worst(ends)?.kind).toBe(order[gravest]);
        expect(worst([...ends].reverse())?.kind).toBe(order[gravest]);
      }),
    );
  });

  test('what is asked about again keeps its time, whoever else needs a person or a longer wait', () => {
    const blocked: WindowEnd = { kind: 'blocked', code: 'c', batch: batchOf(1) };
    const wait: WindowEnd = { kind: 'wait', code: 'd', ms: 60_000, batch: batchOf(2) };
    const pending: WindowEnd = { kind: 'pending', code: 'e', ms: 500, batch: batchOf(3), ageMs: 9 };
    const one = { kind: 'blocked', code: 'c', batch: batchOf(1), ms: 500 };
    expect(worst([blocked, pending, wait])).toEqual(one);
    expect(worst([wait, blocked, blocked, pending])).toEqual(one);
    expect(worst([wait, pending])).toEqual(pending);
    expect(worst([blocked, { kind: 'stopped' }])).toEqual(blocked);
  });

  test('of several waits the longest counts', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1 }), (delays) => {
        const ends = delays.map((ms): WindowEnd => ({ kind: 'wait', code: 'd', ms, batch: batchOf(2) }));
        expect(worst(ends)).toMatchObject({ kind: 'wait', ms: Math.max(...delays) });
      }),
    );
  });
});

test('of two staged batches the older is named, and the sooner poll is waited for', () => {
  const pending = (n: number, ms: number, ageMs: number): WindowEnd => ({
    kind: 'pending',
    code: `c${n}`,
    ms,
    batch: batchOf(n),
    ageMs,
  });
  const expected = { kind: 'pending', code: 'c1', ms: 10, batch: batchOf(1), ageMs: 90 };
  expect(graver(pending(1, 50, 90), pending(2, 10, 5))).toEqual(expected);
  expect(graver(pending(2, 10, 5), pending(1, 50, 90))).toEqual(expected);
});

describe('waits between sendings', () => {
  test('begin at a second, double, and end at a minute', () => {
    expect([1, 2, 3, 6, 7, 8, 5_000].map(backoffMs)).toEqual([
      1_000, 2_000, 4_000, 32_000, 60_000, 60_000, 60_000,
    ]);
    expect(backoffMs(0)).toBe(1_000);
  });
});

describe('receipts', () => {
  test('are JSON that the journal can store, whatever the provider says, and bounded', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string({ unit: 'binary' })), (receipt) => {
        const text = receiptText(receipt);
        expect(JSON.parse(text)).toEqual({ ...receipt });
        expect(text).not.toMatch(/\0/);
        expect(text.isWellFormed()).toBe(true);
      }),
    );
    const long = receiptText({ body: 'x'.repeat(70_000) });
    expect(JSON.parse(long)).toMatchObject({ truncated: true });
  });
});

describe('the drain limit', () => {
  test('gives up only after a stop, and only once its time has passed', async () => {
    let gaveUp = 0;
    const stop = new AbortController();
    const drain = new DrainLimit(stop.signal, () => (gaveUp += 1), 30);
    await sleep(60);
    expect(gaveUp).toBe(0);
    stop.abort();
    await sleep(5);
    expect(gaveUp).toBe(0);
    await sleep(60);
    expect(gaveUp).toBe(1);
    drain.end();
  });

  test('does not give up where everything has landed in time', async () => {
    let gaveUp = 0;
    const stop = new AbortController();
    const drain = new DrainLimit(stop.signal, () => (gaveUp += 1), 20);
    stop.abort();
    drain.end();
    await sleep(50);
    expect(gaveUp).toBe(0);
  });

  test('begins at once for an attempt that was stopped before it began', async () => {
    let gaveUp = 0;
    const drain = new DrainLimit(AbortSignal.abort(), () => (gaveUp += 1), 10);
    await sleep(40);
    expect(gaveUp).toBe(1);
    drain.end();
  });
});

describe('receipts that share a commit', () => {
  /** A journal that takes its time, and refuses one batch. */
  class SlowJournal {
    readonly commits: number[] = [];
    refused: BatchId | null = null;

    /** As the pool is called: grouped settlements have an array of ids third, single ones a lone id. */
    async query(_text: string, [, , ids]: readonly unknown[]): Promise<{ rows: object[] }> {
      await sleep(5);
      const some = (Array.isArray(ids) ? ids : [ids]).map((id: Buffer) => id.toString('hex'));
      if (this.refused !== null && some.includes(this.refused.replace(/^sha256:/, ''))) {
        throw Object.assign(new Error('no'), { code: 'RM003' });
      }
      this.commits.push(some.length);
      return { rows: [{ value: null }] };
    }
  }

  function settlementsOn(journal: SlowJournal): Settlements {
    const attempt = { run: runId('1'), epoch: epoch('1') };
    return new Settlements(journal as unknown as pg.Pool, attempt as never);
  }

  const settlement = (n: number): Settlement => ({ batch: batchOf(n), receipt: '{}' });
  const none = new Map<string, string | null>();

  test('those that arrive while a commit is under way go with the next one, sixteen at most', async () => {
    const journal = new SlowJournal();
    const settlements = settlementsOn(journal);
    await Promise.all(Array.from({ length: 40 }, (_, n) => settlements.settle(settlement(n), [], none)));
    expect(journal.commits).toEqual([1, 16, 16, 7]);
  });

  test('one that the journal refuses takes none of the others with it, and only its own caller hears of it', async () => {
    const journal = new SlowJournal();
    journal.refused = batchOf(5);
    const settlements = settlementsOn(journal);
    const results = await Promise.allSettled(
      Array.from({ length: 12 }, (_, n) => settlements.settle(settlement(n), [], none)),
    );
    expect(results.flatMap((r, n) => (r.status === 'rejected' ? [n] : []))).toEqual([5]);
    await settlements.settle(settlement(99), [], none);
    expect(journal.commits.reduce((sum, n) => sum + n, 0)).toBe(12);
  });

  test('one with store writes of an adapter commits by itself', async () => {
    const journal = new SlowJournal();
    const settlements = settlementsOn(journal);
    const writes = new Map([['job', '1']]);
    await Promise.all([0, 1, 2].map((n) => settlements.settle(settlement(n), [], writes)));
    expect(journal.commits).toEqual([1, 1, 1]);
  });
});
