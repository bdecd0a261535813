/** The log as indexers read it: whole entries in bounded pages, effects in order, values on request (design.md section 7). */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { logPosition } from '../../src/domain/ids.ts';
import { logHead, readEffects } from '../../src/journal/log.ts';
import type { EntryEffects } from '../../src/journal/log-effects.ts';
import { entryAt, logLag, type ReadOptions, readLogPage } from '../../src/journal/log-reader.ts';
import { confirmReplacement } from '../../src/journal/replacement.ts';
import { closeRun, promote } from '../../src/journal/runs.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun, type TestRow } from '../support/journal-run.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const many = (n: number, payload: string): readonly TestRow[] =>
  Array.from({ length: n }, (_, i) => ({ key: `k${i}`, members: [{ id: `k${i}`, payload }] }));

/** Everything after a position, and how many effects each page had. */
async function readAll(options: ReadOptions, after = 0n) {
  const entries: EntryEffects[] = [];
  const pages: number[] = [];
  for (;;) {
    const last = entries.at(-1)?.entry.position ?? after;
    const page = await readLogPage(journal.runtime, logPosition(last), options);
    if (page.kind !== 'entries') return { entries, pages, end: page };
    entries.push(...page.entries);
    pages.push(page.entries.reduce((sum, { effects }) => sum + effects.length, 0));
  }
}

const whole = ({ entry, effects }: EntryEffects) => ({ entry, effects });
const told = ({ effects }: EntryEffects) => effects.map((e) => `${e.action} ${e.identity} ${e.payload}`);

describe('pages of the log', () => {
  beforeAll(async () => {
    await ScriptedRun.whole(journal.runtime, { mirror: 'a' }, many(30, '1'), 4);
    // A small change holds its own bytes; a large one, half of which is rejected and given up, refers to its generation.
    await ScriptedRun.whole(
      journal.runtime,
      { mirror: 'a' },
      [...many(3, '2'), ...many(30, '1').slice(5)],
      2,
    );
    const given = await ScriptedRun.open(journal.runtime, { mirror: 'a' });
    await given.upToAdditions(many(30, '3'));
    await given.deliver('upsert', {
      size: 10,
      count: 1,
      reject: new Set(['k1', 'k2', 'k3', 'k4', 'k5', 'k6']),
    });
    await closeRun(journal.runtime, given.attempt, 'rejected', 'refused-row');
    const replaced = { mirror: 'r', strategy: 'native-replace' } as const;
    const first = await ScriptedRun.open(journal.runtime, replaced);
    await first.upToAdditions(rowsOf({ x: '1' }));
    await first.deliver('upsert');
    await first.beginRemovals();
    await first.beginFinish();
    await first.step('finish');
    await confirmReplacement(journal.runtime, first.attempt);
    await first.foldAll();
    await promote(journal.runtime, first.attempt);
    const again = await ScriptedRun.open(journal.runtime, replaced);
    await again.upToAdditions(rowsOf({ x: '1', y: '1' }));
    await again.deliver('upsert');
  });

  test('each entry has the effects that the journal tells of it by itself, in order, whatever the size of a page', async () => {
    const { entries } = await readAll({ values: 'all' });
    expect(entries.map(({ entry }) => entry.position)).toEqual(entries.map((_, i) => BigInt(i + 1)));
    expect(entries.at(-1)?.entry.position).toBe((await logHead(journal.runtime)).position);
    for (const one of entries) {
      const alone = await readEffects(journal.runtime, one.entry);
      expect(one.effects.map((e) => [e.identity, e.payload])).toEqual(
        alone.map((e) => [e.identity, e.payload]),
      );
      expect(one.effects.map((e) => e.identityHash.toString('hex'))).toEqual(
        alone.map((e) => e.identityHash.slice('sha256:'.length)),
      );
      expect(one.effects.map((e) => e.payloadHash?.toString('hex') ?? null)).toEqual(
        alone.map((e) => e.payloadHash?.slice('sha256:'.length) ?? null),
      );
    }
    for (const effects of [1, 7, 100]) {
      const paged = await readAll({ values: 'all', effects });
      expect(paged.entries.map(whole)).toEqual(entries.map(whole));
      expect(Math.max(...paged.pages)).toBeLessThan(effects + 10);
      expect(paged.end).toEqual({ kind: 'end' });
    }
  });

  test('an effect is an addition, a change, a removal, or an unchanged upload of a replacement', async () => {
    const { entries } = await readAll({});
    const counts = new Map<string, number>();
    for (const { effects } of entries)
      for (const { action } of effects) counts.set(action, (counts.get(action) ?? 0) + 1);
    expect(Object.fromEntries(counts)).toEqual({ add: 30 + 2, change: 3 + 4, remove: 2, keep: 1 });
  });

  test('values are given only where they are asked for, and bound a page by bytes', async () => {
    const all = (await readAll({ values: 'all' })).entries.flatMap(({ effects }) => effects);
    const plain = await readAll({});
    expect(plain.entries.flatMap(({ effects }) => effects).filter((e) => e.identity !== null)).toEqual([]);
    expect(plain.pages).toHaveLength(1);
    const named = (await readAll({ values: 'identities' })).entries.flatMap(({ effects }) => effects);
    expect(named.map(({ identity }) => identity)).toEqual(all.map(({ identity }) => identity));
    expect(named.filter(({ payload }) => payload !== null)).toEqual([]);
    const small = await readAll({ values: 'all', bytes: 1 });
    expect(small.entries.flatMap(told)).toEqual((await readAll({ values: 'all' })).entries.flatMap(told));
    expect(small.pages.length).toBeGreaterThan(10);
  });

  test('a reader begins after any position, and learns how far behind it is', async () => {
    const head = await logHead(journal.runtime);
    const { entries } = await readAll({}, head.position - 2n);
    expect(entries.map(({ entry }) => entry.position)).toEqual([head.position - 1n, head.position]);
    expect(await readLogPage(journal.runtime, head.position)).toEqual({ kind: 'end' });
    expect((await entryAt(journal.runtime, head.position))?.entryHash).toBe(head.entryHash);
    expect(await entryAt(journal.runtime, logPosition(head.position + 1n))).toBeNull();
    expect(await logLag(journal.runtime, head.position)).toEqual({ positions: 0n, ms: 0 });
    await sleep(5);
    const lag = await logLag(journal.runtime, logPosition(0));
    expect(lag.positions).toBe(head.position);
    expect(lag.ms).toBeGreaterThan((await logLag(journal.runtime, logPosition(head.position - 1n))).ms - 1);
    expect((await logLag(journal.runtime, logPosition(head.position + 3n))).positions).toBe(-3n);
  });
});
