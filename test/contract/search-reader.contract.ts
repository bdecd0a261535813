/**
 * What whoever can be asked who is in which mirrors has to answer (src/indexing/reader.ts): each kind of index, and the journal.
 * The log is a real one; `catchUp` is called after it has grown.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FoundMember } from '../../src/domain/found.ts';
import { searchedText, type TextMatch } from '../../src/domain/identity-text.ts';
import { type LogPosition, type Sha256, sha256FromHex } from '../../src/domain/ids.ts';
import type { Answer, Search } from '../../src/indexing/reader.ts';
import { logHead } from '../../src/journal/log.ts';
import { IndexScene } from '../support/index-scene.ts';
import { identityHash } from '../support/journal-run.ts';

export interface AskedSearch {
  catchUp(): Promise<void>;
  search(search: Search): Promise<FoundThere>;
  close(): Promise<void>;
}

export interface FoundThere {
  /** As of which this is. */
  readonly position: LogPosition;
  readonly found: readonly FoundMember[];
  readonly more: boolean;
}

/** Of an index that is built. */
export function foundIn(answer: Answer<FoundMember>): FoundThere {
  if (answer.kind !== 'answered' || answer.build.mark === null) throw new Error(answer.kind);
  return { position: answer.build.mark.position, found: answer.found, more: answer.more };
}

/** One value, several, numbers, escapes, other scripts, and a value that is longer than any index takes. */
const LONG = `long ${'x'.repeat(5_000)}`;
const IDENTITIES = [
  '{"email":"Ann@Example.org"}',
  '{"email":"ann@example.org","region":"eu"}',
  '{"email":"bob@example.org","region":"eu"}',
  '{"id":42}',
  '{"id":"42"}',
  '{"id":"420"}',
  '{"name":"J\u00fcrgen \\"J\\" 😀","tags":["a,b","{c}","NULL"]}',
  `{"id":"${LONG} one"}`,
  `{"id":"${LONG} two"}`,
];

const rowsWith = (payload: string, ids: readonly string[]) =>
  ids.map((id, n) => ({ key: `${n} ${id.slice(0, 40)}`, members: [{ id, payload }] }));

export function describeSearch(name: string, open: (scene: IndexScene) => Promise<AskedSearch>): void {
  describe(name, () => {
    let scene: IndexScene;
    let asked: AskedSearch;

    beforeAll(async () => {
      scene = await IndexScene.open();
      asked = await open(scene);
      await scene.run('one', rowsWith('1', IDENTITIES));
      await scene.run('two', rowsWith('1', IDENTITIES.slice(0, 3)));
      await scene.run('one', rowsWith('2', IDENTITIES.slice(1)));
      await scene.run('one', rowsWith('2', IDENTITIES));
      await asked.catchUp();
    });
    afterAll(async () => {
      await asked.close();
      await scene.close();
    });

    const ask = (change: Partial<Search>) =>
      asked.search({ hashes: [], text: null, mirrors: null, limit: 100, ...change });
    const found = async (
      typed: string,
      match: TextMatch = 'value',
      mirrors: readonly string[] | null = null,
    ) =>
      (await ask({ text: searchedText(typed, match), mirrors })).found
        .map(({ mirror, identity }) => `${mirror} ${identity?.slice(0, 60)}`)
        .sort();

    test('says who is held, by which run, as of which position, and since when without a break', async () => {
      const { position } = await logHead(scene.journal.runtime);
      const answer = await ask({ hashes: [hashOf(0)] });
      expect(answer).toMatchObject({ more: false, position });
      const entries = await scene.journal.admin.query<{ position: string; recorded_at: Date; run: string }>(
        'select position, recorded_at, run_id as run from retl.log_entry where effects > 0 order by position',
      );
      const at = (n: bigint) => entries.rows.find((entry) => BigInt(entry.position) === n);
      expect(answer.found.map(({ mirror }) => mirror)).toEqual(['one', 'two']);
      for (const member of answer.found) {
        expect(member).toMatchObject({ identity: IDENTITIES[0], identityHash: hashOf(0) });
        expect(at(member.position)).toMatchObject({ run: `${member.run}`, recorded_at: member.acceptedAt });
        expect(at(member.since)?.recorded_at).toEqual(member.sinceAt);
      }
      // It left the first mirror, and came back by the last run; who was changed meanwhile is held from the beginning.
      const [one, two] = answer.found;
      expect(one?.since).toBe(one?.position);
      expect(two?.run).toBe(2n);
      const [changed] = (await ask({ hashes: [hashOf(3)] })).found;
      expect(at(changed?.since ?? 0n)?.run).toBe('1');
      expect(changed?.run).toBe(3n);
    });

    test('finds a whole value of an identity, whatever its case and form, numbers as they are written', async () => {
      expect(await found('ANN@example.org')).toEqual([
        'one {"email":"Ann@Example.org"}',
        'one {"email":"ann@example.org","region":"eu"}',
        'two {"email":"Ann@Example.org"}',
        'two {"email":"ann@example.org","region":"eu"}',
      ]);
      expect(await found('EU', 'value', ['two'])).toEqual([
        'two {"email":"ann@example.org","region":"eu"}',
        'two {"email":"bob@example.org","region":"eu"}',
      ]);
      expect(await found('42')).toEqual(['one {"id":"42"}', 'one {"id":42}']);
      expect(await found('JU\u0308RGEN "j" 😀')).toHaveLength(1);
      for (const tag of ['A,B', '{c}', 'null']) expect(await found(tag), tag).toHaveLength(1);
      for (const nobody of ['email', 'example', '4', "x' or true --", '%', ''])
        expect(await found(nobody), nobody).toEqual([]);
    });

    test('finds long values by all of their text', async () => {
      expect(await found(`${LONG} one`)).toHaveLength(1);
      expect(await found(LONG)).toEqual([]);
      expect(await found(LONG, 'part')).toHaveLength(2);
      expect(await found('X two', 'part')).toHaveLength(1);
    });

    test('finds a part of a value where a part will do', async () => {
      expect(await found('@EXAMPLE.', 'part', ['one'])).toHaveLength(3);
      expect(await found('42', 'part')).toEqual(['one {"id":"42"}', 'one {"id":"420"}', 'one {"id":42}']);
      expect(await found('"j" 😀', 'part')).toHaveLength(1);
      for (const nobody of ['email', '","', '%', '_'])
        expect(await found(nobody, 'part'), nobody).toEqual([]);
    });

    test('gives the first so many in order of identity hash and target, and says that there are more', async () => {
      const all = await ask({ text: searchedText('example', 'part') });
      const ordered = [...all.found].sort((a, b) =>
        a.identityHash === b.identityHash
          ? Number(a.target - b.target)
          : a.identityHash < b.identityHash
            ? -1
            : 1,
      );
      expect(all.found).toEqual(ordered);
      for (const limit of [1, 3, 5]) {
        const some = await ask({ text: searchedText('example', 'part'), limit });
        expect(some).toMatchObject({ more: true, found: all.found.slice(0, limit) });
      }
      expect(await ask({ text: searchedText('example', 'part'), limit: 6 })).toMatchObject({ more: false });
    });

    test('finds by hash and by text at once, each member once, and nobody by an unknown hash', async () => {
      const both = await ask({
        hashes: [hashOf(1), hashOf(3)],
        text: searchedText('eu', 'value'),
        mirrors: ['one'],
      });
      expect(both.found.map(({ identity }) => identity).sort()).toEqual([
        IDENTITIES[1],
        IDENTITIES[2],
        IDENTITIES[3],
      ]);
      expect((await ask({ hashes: [sha256FromHex('0'.repeat(64))] })).found).toEqual([]);
      expect((await ask({ hashes: [hashOf(0)], mirrors: [] })).found).toEqual([]);
    });

    const hashOf = (n: number): Sha256 => sha256FromHex(identityHash(IDENTITIES[n] ?? '').toString('hex'));
  });
}
