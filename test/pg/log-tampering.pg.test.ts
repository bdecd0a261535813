/**
 * What stands beside the hashes of the log (design.md section 5): identities, payloads and the bytes of removals, wherever they are
 * kept. Another one, and one that is gone, is found and named; and none of it is sent (rule 2).
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Folding } from '../../src/domain/folding.ts';
import { loadCandidate } from '../../src/journal/candidate.ts';
import { sweepStep } from '../../src/journal/compaction.ts';
import { logHead, operationRows } from '../../src/journal/log.ts';
import { latestSnapshot } from '../../src/journal/log-snapshot.ts';
import { readOperations } from '../../src/journal/operations.ts';
import { rowReader } from '../../src/planning/row-reader.ts';
import { compactTo } from '../support/compact.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { identityHash, identityOf, ScriptedRun, type TestRow } from '../support/journal-run.ts';
import { tampered } from '../support/tamper.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const MALLORY = `'{"id":"mallory"}'`;

/** Members `from` to `to`; those of an even number are removed with bytes of their own. */
const rows = (from: number, to: number, payload: string): readonly TestRow[] =>
  Array.from({ length: to - from }, (_, i) => {
    const id = `k${from + i}`;
    const remove = i % 2 === 0 ? `{"gone":"${id}"}` : null;
    return { key: id, members: [{ id, payload, remove }] };
  });

const tableOf = async (run: ScriptedRun) => {
  const { table, generation } = await operationRows(journal.runtime, run.run);
  return { operations: table, generation: `retl.generation_${generation}` };
};

/** What is done to one row, by the column that it is done to; `own`: the row has removal bytes of its own. */
const DAMAGE = [
  { set: `identity = ${MALLORY}`, own: false, rule: 'identity' },
  { set: `identity = ${MALLORY}`, own: true, rule: 'identity' },
  { set: `identity = identity || ' '`, own: false, rule: 'identity' },
  { set: 'identity = null', own: false, rule: 'identity' },
  { set: 'identity = null', own: true, rule: 'identity' },
  { set: `remove = ${MALLORY}`, own: false, rule: 'removal' },
  { set: `remove = ${MALLORY}`, own: true, rule: 'removal' },
  { set: 'remove = null', own: true, rule: 'removal' },
  { set: `upsert = ${MALLORY}`, own: false, rule: 'payload' },
  { set: 'upsert = null', own: true, rule: 'payload' },
];

const onOne = (own: boolean) => (table: string, set: string, where: string) =>
  `update ${table} set ${set} where ${where} and identity_hash = '\\x${identityHash(own ? 'k2' : 'k3').toString('hex')}'`;

describe('an altered member', () => {
  const mirror = 'altered';
  let large: ScriptedRun;
  let small: ScriptedRun;

  beforeAll(async () => {
    large = await ScriptedRun.whole(journal.runtime, { mirror }, rows(0, 40, '1'));
    small = await ScriptedRun.whole(
      journal.runtime,
      { mirror },
      [...rows(0, 6, '2'), ...rows(6, 40, '1')],
      4,
    );
  });

  test.each(DAMAGE)(
    'of an entry of the log is named: $set (own removal: $own)',
    async ({ set, own, rule }) => {
      const named = { kind: 'broken', rule: rule === 'payload' ? 'effects' : rule };
      const one = onOne(own);
      const { generation } = await tableOf(large);
      expect(await tampered(journal, one(generation, set, 'kind = 1'))).toEqual({ ...named, position: 1n });
      const { operations } = await tableOf(small);
      const found = await tampered(journal, one(operations, set, "change <> 'r'"));
      expect(found).toMatchObject(named);
      expect(found.position).toBeGreaterThan(1n);
    },
  );

  test('with hashes that fit what was altered is named by the batch that it is no operation of', async () => {
    const { operations } = await tableOf(small);
    const where = `identity_hash = '\\x${identityHash('k3').toString('hex')}'`;
    for (const set of [
      `identity = ${MALLORY}, identity_hash = sha256(${MALLORY}::bytea)`,
      `remove = ${MALLORY}, removal_hash = sha256(${MALLORY}::bytea)`,
      `upsert = ${MALLORY}, payload_hash = sha256(${MALLORY}::bytea)`,
      'identity_hash = null',
    ])
      expect(await tampered(journal, `update ${operations} set ${set} where ${where}`), set).toMatchObject({
        rule: 'batch-id',
      });
  });

  test('whose texts stand in the row of another is named', async () => {
    const { generation } = await tableOf(large);
    for (const [column, rule] of [
      ['identity_hash', 'identity'],
      ['removal_hash', 'removal'],
      ['payload_hash', 'effects'],
    ])
      expect(
        await tampered(journal, onOne(true)(generation, `${column} = sha256(source_key::bytea)`, 'kind = 1')),
      ).toEqual({ kind: 'broken', position: 1n, rule });
  });

  describe('that a run would remove', () => {
    let gone: ScriptedRun;

    beforeAll(async () => {
      gone = await ScriptedRun.open(journal.runtime, { mirror });
      await gone.upToAdditions([]);
    });

    /** What reading every removal comes to, where `sql` was done before they were planned, or after. */
    async function removals(before: string, after = ''): Promise<unknown> {
      const client = await journal.admin.connect();
      try {
        await client.query(`begin; ${before}`);
        await client.query('select retl.begin_removals($1, $2, 10000)', [gone.run, gone.attempt.epoch]);
        await client.query(after);
        const record = await gone.record();
        const first = (record.additionsEnd ?? 0n) + 1n;
        return await readOperations(client, record, 'remove', first, first + 39n);
      } catch (error) {
        return error;
      } finally {
        await client.query('rollback');
        client.release();
      }
    }

    test.each(DAMAGE.filter(({ rule }) => rule !== 'payload'))(
      'is not sent: $set (own removal: $own)',
      async ({ set, own, rule }) => {
        const one = onOne(own);
        const key = identityHash(own ? 'k2' : 'k3').toString('hex');
        const refused = {
          code: 'journal.damaged',
          details: { mirror, run: `${gone.run}`, rule, count: 1, identityHash: `sha256:${key}` },
        };
        const { operations } = await tableOf(small);
        expect(await removals(one(operations, set, "change <> 'r'"))).toMatchObject(refused);
        expect(await removals('', one(`retl.operation_${gone.run}`, set, 'true'))).toMatchObject(refused);
        expect(await removals('')).toHaveLength(40);
      },
    );

    test('is not sent where the membership names the operation of another as its own', async () => {
      const { target } = await gone.record();
      const [a, b] = ['k2', 'k3'].map((id) => `identity_hash = '\\x${identityHash(id).toString('hex')}'`);
      const swap = `update retl.membership_${target} set sequence = (
        select sequence from retl.membership_${target} where ${a}) where ${b}`;
      expect(await removals(swap)).toMatchObject({ code: 'journal.damaged', details: { rule: 'identity' } });
    });

    test('says neither value nor identity', async () => {
      const { operations } = await tableOf(small);
      const error = await removals(onOne(false)(operations, `identity = ${MALLORY}`, "change <> 'r'"));
      expect(String(error)).toMatch(/journal\.damaged.*count=1/);
      expect(String(error)).not.toMatch(/mallory|k3/);
    });
  });

  test('that a run would add is not sent under a forged identity, nor without its payload', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'adding' });
    await run.upToAdditions(rows(0, 9, '1'));
    const record = await run.record();
    const { generation } = await tableOf(run);
    for (const [set, rule] of [
      [`identity = ${MALLORY}`, 'identity'],
      ['identity = null', 'identity'],
      ['upsert = null', 'payload'],
    ] as const) {
      const client = await journal.admin.connect();
      try {
        await client.query(`begin; ${onOne(false)(generation, set, 'kind = 1')}`);
        const first = record.firstSequence ?? 0n;
        await expect(readOperations(client, record, 'upsert', first, first + 8n)).rejects.toMatchObject({
          code: 'journal.damaged',
          details: { rule, count: 1 },
        });
      } finally {
        await client.query('rollback');
        client.release();
      }
    }
  });
});

describe('folded identities', () => {
  const load = async (run: ScriptedRun, ids: readonly string[], identityFolding: readonly Folding[]) => {
    await run.init();
    const form = { writeForm: '', identityFolding };
    await loadCandidate(
      journal.runtime,
      run.attempt,
      '["text"]',
      async (sink) => {
        const failures = {
          any: false,
          add: (error: unknown) => {
            throw error;
          },
        };
        const member = (id: string) => ({ identity: identityOf(id), upsert: identityOf(id), remove: null });
        const map = (id: string) => ({ sourceKey: JSON.stringify([id]), members: [member(id)] });
        const add = rowReader(map, form, sink, failures);
        for (const id of ids) add(id);
      },
      form,
    );
    await run.seal();
    await run.plan();
  };

  test('are proven as their run has folded them, to the letter of what their removal sends', async () => {
    const mirror = 'folded';
    const first = await ScriptedRun.open(journal.runtime, { mirror });
    await load(first, ['Ann', 'bob', 'JÜRGEN'], ['case', 'nfc']);
    await first.complete();
    expect(await tampered(journal, 'select')).toMatchObject({ kind: 'intact' });
    const { generation } = await tableOf(first);
    for (const [from, to] of [
      ['Ann', 'ann'],
      ['Ann', 'ANN'],
      ['bob', 'Bob'],
    ])
      expect(
        await tampered(journal, `update ${generation} set identity = replace(identity, '${from}', '${to}')`),
      ).toMatchObject({ kind: 'broken', rule: 'removal' });
    expect(
      await tampered(journal, `update ${generation} set identity = replace(identity, 'Ann', 'Anna')`),
    ).toMatchObject({ kind: 'broken', rule: 'identity' });
    // Folded otherwise by now: those that leave were hashed as they were accepted.
    const second = await ScriptedRun.open(journal.runtime, { mirror });
    await load(second, ['Zoe'], []);
    expect((await second.record()).identityFoldings).toEqual(['', 'case,nfc']);
    await second.complete();
    expect(await tampered(journal, 'select')).toMatchObject({ kind: 'intact' });
    const forgotten = `update retl.target set identity_foldings = '{""}' where identity_foldings <> '{""}'`;
    expect(await tampered(journal, forgotten)).toMatchObject({ kind: 'broken', rule: 'identity' });
  });
});

describe('a log snapshot', () => {
  beforeAll(async () => {
    const mirror = 'kept';
    await ScriptedRun.whole(journal.runtime, { mirror }, rows(0, 60, '1'));
    await ScriptedRun.whole(journal.runtime, { mirror }, [...rows(0, 6, '1'), ...rows(6, 60, '2')]);
    const { position } = await logHead(journal.runtime);
    await compactTo(journal.runtime, Number(position));
    for (let step = await sweepStep(journal.runtime, 1000, 0); step.kind !== 'idle'; )
      step = await sweepStep(journal.runtime, 1000, 0);
  });

  /** Where the bytes of members are: of an older run, kept apart, and of the promoted one. */
  async function tables(): Promise<{ readonly kept: string; readonly promoted: string }> {
    const { rows: found } = await journal.admin.query(
      `select (select format('retl.kept_%s_%s', run_id, kept_in) from retl.run r where r.mirror_id = m.mirror_id and rows_kept > 0) as kept,
        (select format('retl.generation_%s', generation_id) from retl.generation g join retl.target t using (target_id)
         where t.mirror_id = m.mirror_id and g.state = 'promoted') as promoted
       from retl.mirror m where name = 'kept'`,
    );
    return found[0];
  }

  test.each(DAMAGE)(
    'has each member held against its hashes, where its bytes were kept and where they are still: $set (own removal: $own)',
    async ({ set, own, rule }) => {
      const { kept, promoted } = await tables();
      const newest = await latestSnapshot(journal.runtime);
      const named = { kind: 'broken', rule: `snapshot-${rule}` };
      const one = onOne(own);
      const found = await tampered(journal, one(kept, set, 'true'));
      expect(found).toMatchObject(named);
      expect(found.position).toBeLessThanOrEqual(newest?.boundary ?? 0n);
      const other = identityHash(own ? 'k8' : 'k9').toString('hex');
      const still = `update ${promoted} set ${set} where kind = 1 and identity_hash = '\\x${other}'`;
      expect(await tampered(journal, still)).toMatchObject(named);
      expect(await tampered(journal, 'select')).toMatchObject({ kind: 'intact' });
    },
  );

  test('is bound to the bytes of removals by its digest', async () => {
    const newest = await latestSnapshot(journal.runtime);
    const { kept } = await tables();
    const one = onOne(true);
    const forged = `remove = ${MALLORY}`;
    const hash = `removal_hash = sha256(${MALLORY}::bytea)`;
    const both = `${one(kept, `${forged}, ${hash}`, 'true')};`;
    expect(await tampered(journal, both)).toMatchObject({ rule: 'snapshot-removal' });
    const all = `${both} ${one(`retl.snapshot_${newest?.id}`, hash, 'true')} and sequence in (select sequence from ${kept})`;
    expect(await tampered(journal, all)).toMatchObject({ rule: 'snapshot-digest' });
  });
});
