/** The log of design.md section 5: positions, the chain, effects that outlive what they were read from, and membership. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { logPosition, sha256FromHex } from '../../src/domain/ids.ts';
import { settleBatches } from '../../src/journal/batches.ts';
import { type CandidateSink, loadCandidate } from '../../src/journal/candidate.ts';
import { type LogEntry, logHead, readEffects, readEntries } from '../../src/journal/log.ts';
import { memberOf } from '../../src/journal/membership.ts';
import { closeRun, promote, prune } from '../../src/journal/runs.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import {
  identityHash,
  identityOf,
  rowsOf,
  ScriptedRun,
  sha,
  type TestRow,
  upsertOf,
} from '../support/journal-run.ts';
import { tampered as tamperedWith } from '../support/tamper.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const many = (n: number, payload: string): readonly TestRow[] =>
  Array.from({ length: n }, (_, i) => ({ key: `k${i}`, members: [{ id: `k${i}`, payload }] }));

async function entriesOf(run: ScriptedRun): Promise<readonly LogEntry[]> {
  const entries = await readEntries(journal.runtime, logPosition(0), 100_000);
  return entries.filter((e) => e.run === run.run);
}

async function member(run: ScriptedRun, id: string) {
  const { target } = await run.record();
  return memberOf(journal.runtime, target, sha256FromHex(identityHash(id).toString('hex')));
}

describe('positions', () => {
  test('mirrors that settle at once get gapless positions, and no reader finds a smaller one later', async () => {
    const mirrors = ['race-a', 'race-b', 'race-c', 'race-d', 'race-e', 'race-f'];
    const runs = await Promise.all(
      mirrors.map(async (mirror) => {
        const run = await ScriptedRun.open(journal.runtime, { mirror });
        await run.upToAdditions(many(40, '1'));
        return run;
      }),
    );
    let done = false;
    const readers = [0, 1, 2].map(async () => {
      let seen = logPosition(0);
      while (!done) {
        for (const e of await readEntries(journal.runtime, seen, 7)) {
          expect(e.position).toBe(seen + 1n);
          seen = e.position;
        }
        await sleep(1);
      }
      return seen;
    });
    await Promise.all(runs.map((run) => run.complete(2)));
    done = true;
    const seen = await Promise.all(readers);
    const head = await logHead(journal.runtime);
    const all = await readEntries(journal.runtime, logPosition(0), 100_000);
    expect(all.map((e) => e.position)).toEqual(all.map((_, i) => BigInt(i + 1)));
    expect(all.at(-1)?.position).toBe(head.position);
    expect(all.at(-1)?.entryHash).toBe(head.entryHash);
    for (const s of seen) expect(s).toBeLessThanOrEqual(head.position);
    expect(await verifyLog(journal.runtime, { effects: true })).toEqual({
      kind: 'intact',
      position: head.position,
    });
  });

  test('several settlements of one transaction follow one another', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'several' });
    await run.upToAdditions(many(6, '1'));
    const batches = await run.prepare('upsert', 2);
    for (const b of batches) await run.sending(b.id);
    await settleBatches(
      journal.runtime,
      run.attempt,
      batches.map((b) => ({ batch: b.id, receipt: '{}' })),
    );
    const entries = await entriesOf(run);
    expect(entries.map((e) => e.batch)).toEqual(batches.map((b) => b.id));
    expect((await verifyLog(journal.runtime)).kind).toBe('intact');
  });
});

describe('effects', () => {
  test('effects are read in order by hash, rejected ones left out, a finish has none', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'effects' });
    await run.upToAdditions(rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1' }));
    await run.deliver('upsert', { reject: new Set(['b', 'd']) });
    const [entry] = await entriesOf(run);
    if (entry === undefined) throw new Error('no entry');
    expect(entry).toMatchObject({ kind: 'additions', effects: 3 });
    const effects = await readEffects(journal.runtime, entry);
    const expected = ['a', 'c', 'e'].sort((x, y) => identityHash(x).compare(identityHash(y)));
    expect(effects.map((e) => e.identity)).toEqual(expected.map(identityOf));
    expect(effects.map((e) => e.payload)).toEqual(expected.map((id) => upsertOf({ id, payload: '1' })));
    expect((await verifyLog(journal.runtime, { effects: true })).kind).toBe('intact');
  });

  test('effects outlive folding, promotion, supersession, pruning and an abort', async () => {
    const mirror = 'outlive';
    const expected = new Map<string, readonly string[]>();
    const remember = async (run: ScriptedRun) => {
      for (const entry of await entriesOf(run)) {
        const effects = await readEffects(journal.runtime, entry);
        expected.set(
          entry.batch,
          effects.map((e) => `${e.action} ${e.identity} ${e.payload}`),
        );
      }
    };
    const first = await ScriptedRun.open(journal.runtime, { mirror });
    await first.upToAdditions(many(30, '1'));
    await first.deliver('upsert', { size: 10 });
    await remember(first);
    await first.beginRemovals();
    await first.beginFinish();
    await first.step('finish');
    await first.foldAll();
    await promote(journal.runtime, first.attempt);
    // A small change keeps its own bytes, a large one refers to its generation; both are aborted half-way.
    for (const changed of [3, 28]) {
      const aborted = await ScriptedRun.open(journal.runtime, { mirror });
      await aborted.upToAdditions([...many(changed, `${changed}`), ...many(30, '1').slice(changed)]);
      await aborted.deliver('upsert', { size: 2, count: 1 });
      await remember(aborted);
      await closeRun(journal.runtime, aborted.attempt, 'aborted', null);
    }
    for (const rows of [many(29, '1'), many(30, '2'), many(30, '2'), many(20, '2')]) {
      const run = await ScriptedRun.whole(journal.runtime, { mirror }, rows);
      await remember(run);
      await prune(journal.runtime, run.run, 100);
    }
    const all = await readEntries(journal.runtime, logPosition(0), 100_000);
    const now = new Map<string, readonly string[]>();
    for (const entry of all.filter((e) => expected.has(e.batch))) {
      const effects = await readEffects(journal.runtime, entry);
      now.set(
        entry.batch,
        effects.map((e) => `${e.action} ${e.identity} ${e.payload}`),
      );
    }
    expect(now).toEqual(expected);
    expect(now.size).toBeGreaterThan(9);
    expect((await verifyLog(journal.runtime, { effects: true })).kind).toBe('intact');
  });
});

describe('tampering', () => {
  const tampered = (sql: string, effects = false) => tamperedWith(journal, sql, effects);

  test('payload hashes are proven with the write form of their run, a change of which sends every member again', async () => {
    const rows = rowsOf({ a: '1', b: '1', c: '1' });
    await ScriptedRun.whole(journal.runtime, { mirror: 'write-form' }, rows);
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'write-form' });
    await run.init();
    const fill = async (sink: CandidateSink): Promise<void> => {
      for (const { key, members } of rows)
        for (const m of members)
          sink.addMember(JSON.stringify([key]), 0, {
            identityHash: sha(identityOf(m.id)).toString('latin1'),
            payloadHash: sha(`{"as":"tier"}\n${upsertOf(m)}`).toString('latin1'),
            removalHash: null,
            identity: identityOf(m.id),
            upsert: upsertOf(m),
            remove: null,
          });
    };
    const form = { writeForm: '{"as":"tier"}', identityFolding: [] };
    await loadCandidate(journal.runtime, run.attempt, '["text"]', fill, form);
    await run.seal();
    await run.plan();
    await run.complete();
    expect((await entriesOf(run)).reduce((sum, entry) => sum + entry.effects, 0)).toBe(3);
    expect((await verifyLog(journal.runtime, { effects: true })).kind).toBe('intact');
    for (const form of ['', '{"as":"plan"}'])
      expect(
        await tampered(`update retl.run set write_form = '${form}' where run_id = ${run.run}`, true),
      ).toMatchObject({ kind: 'broken', rule: 'effects' });
  });

  test('a changed, missing or re-linked entry is found, and named', async () => {
    const head = await logHead(journal.runtime);
    expect(head.position).toBeGreaterThan(5n);
    expect(await tampered('update retl.log_entry set effects = effects + 1 where position = 3')).toEqual({
      kind: 'broken',
      position: 3n,
      rule: 'entry-hash',
    });
    expect(
      await tampered(
        "update retl.log_entry set recorded_at = recorded_at + interval '1 us' where position = 2",
      ),
    ).toEqual({
      kind: 'broken',
      position: 2n,
      rule: 'entry-hash',
    });
    expect(await tampered('delete from retl.log_entry where position = 4')).toMatchObject({
      position: 4n,
      rule: 'position',
    });
    expect(await tampered(`delete from retl.log_entry where position = ${head.position}`)).toMatchObject({
      position: head.position,
      rule: 'position',
    });
    const relinked = "update retl.log_entry set previous_hash = sha256('x') where position = 5";
    expect(await tampered(relinked)).toMatchObject({ position: 5n, rule: 'previous-hash' });
    expect(await tampered("update retl.log_head set entry_hash = sha256('x')")).toMatchObject({
      rule: 'head',
    });
  });

  test('a forgotten rejection and a changed payload are found by what the entry is bound to', async () => {
    expect(await tampered("delete from retl.rejection where code = 'refused-row'")).toMatchObject({
      rule: 'left-out',
    });
    const entry = (await readEntries(journal.runtime, logPosition(0), 1))[0];
    const { rows } = await journal.admin.query(
      "select generation_id from retl.generation where run_id = $1 and state <> 'discarded'",
      [entry?.run],
    );
    const table = `retl.generation_${rows[0].generation_id}`;
    expect(await tampered(`update ${table} set upsert = '{"id":"mallory"}'`, true)).toMatchObject({
      position: 1n,
      rule: 'effects',
    });
    const swap = `update retl.operation_${entry?.run} set identity_hash = sha256(identity_hash);
      update ${table} set identity_hash = sha256(identity_hash) where kind = 1`;
    expect(await tampered(swap, true)).toMatchObject({ position: 1n, rule: 'batch-id' });
  });
});

describe('membership', () => {
  test('failed-row-deleted: a rejected change leaves what was accepted, its bytes, position and time', async () => {
    const mirror = 'member';
    await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1' }));
    const second = await ScriptedRun.open(journal.runtime, { mirror });
    const before = await member(second, 'b');
    expect(before).toMatchObject({
      kind: 'held',
      payload: upsertOf({ id: 'b', payload: '1' }),
      removal: identityOf('b'),
    });
    await second.upToAdditions(rowsOf({ a: '2', b: '2', c: '2', d: '2', e: '2' }));
    await second.deliver('upsert', { reject: new Set(['b', 'd']) });
    for (const folded of [false, true]) {
      if (folded) await second.foldAll();
      expect(await member(second, 'b')).toEqual(before);
      expect(await member(second, 'a')).toMatchObject({
        payload: upsertOf({ id: 'a', payload: '2' }),
        run: second.run,
      });
    }
    await closeRun(journal.runtime, second.attempt, 'rejected', 'refused-row');
    const third = await ScriptedRun.open(journal.runtime, { mirror });
    await third.upToAdditions(rowsOf({ a: '2', b: '2', c: '2', d: '2', e: '2' }));
    // failed-forgotten: what was rejected is sent again, and never removed.
    const sent = await third.prepare('upsert', 100);
    expect(sent.flatMap((s) => s.members).sort()).toEqual(['b', 'd']);
    expect(await third.record()).toMatchObject({ held: 5 });
    await closeRun(journal.runtime, third.attempt, 'aborted', null);
    await expect(member(third, 'b')).resolves.toEqual(before);
  });

  test('re-add-lost: removed, then added with the same payload, is sent again and has a new position', async () => {
    const mirror = 're-add';
    const first = await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ x: '1', y: '1' }));
    const before = await member(first, 'x');
    const gone = await ScriptedRun.whole(journal.runtime, { mirror }, rowsOf({ y: '1' }));
    expect(await member(gone, 'x')).toEqual({ kind: 'absent' });
    const unchanged = await member(gone, 'y');
    const back = await ScriptedRun.open(journal.runtime, { mirror });
    await back.upToAdditions(rowsOf({ x: '1', y: '1' }));
    const [batch] = await back.deliver('upsert');
    expect(batch?.members).toEqual(['x']);
    const after = await member(back, 'x');
    expect(after).toMatchObject({ kind: 'held', run: back.run });
    if (after.kind !== 'held' || before.kind !== 'held') throw new Error('not held');
    expect(after.position).toBeGreaterThan(before.position);
    expect(after.acceptedAt.getTime()).toBeGreaterThanOrEqual(before.acceptedAt.getTime());
    expect(await member(back, 'y')).toEqual(unchanged);
    await back.beginRemovals();
    await back.beginFinish();
    await closeRun(journal.runtime, back.attempt, 'aborted', null);
  });

  test('removal bytes are those stored at acceptance, whatever the desired ones became', async () => {
    const mirror = 'removal-bytes';
    const removalOf = (id: string, form: string) => `{"${form}":"${id}"}`;
    const rows = (remove: string, payload: string): TestRow[] => [
      { key: '1', members: [{ id: 'p', payload: 'same', remove: removalOf('p', remove) }] },
      { key: '2', members: [{ id: 'q', payload, remove: removalOf('q', remove) }] },
    ];
    await ScriptedRun.whole(journal.runtime, { mirror }, rows('old', '1'));
    const second = await ScriptedRun.whole(journal.runtime, { mirror }, rows('new', '2'));
    expect(await member(second, 'p')).toMatchObject({ removal: removalOf('p', 'old') });
    expect(await member(second, 'q')).toMatchObject({ removal: removalOf('q', 'new') });
    const third = await ScriptedRun.whole(journal.runtime, { mirror }, []);
    const removals = (await entriesOf(third)).filter((e) => e.kind === 'removals');
    const effects = await Promise.all(removals.map((e) => readEffects(journal.runtime, e)));
    expect(
      effects
        .flat()
        .map((e) => `${e.identity} ${e.payload}`)
        .sort(),
    ).toEqual([`${identityOf('p')} ${removalOf('p', 'old')}`, `${identityOf('q')} ${removalOf('q', 'new')}`]);
  });
});
