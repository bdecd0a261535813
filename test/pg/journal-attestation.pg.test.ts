/** An operator's word that a target is new and empty (design, section 4, "Strategies": `new-empty`): of one target, and for good. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attestBaseline } from '../../src/activities/attest-baseline.ts';
import { listMirrors } from '../../src/journal/inspect.ts';
import { recordBaseline } from '../../src/journal/runs.ts';
import { createTestJournal, stateOf, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun, targetOf } from '../support/journal-run.ts';

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

const WORD = { by: 'ada', because: 'made it this morning' };

const attest = (mirror: string, targetKey = targetOf(mirror)) =>
  attestBaseline(journal.runtime, mirror, targetKey, WORD);

async function targets(mirror: string) {
  const { rows } = await journal.admin.query(
    `select t.target_key as key, t.baseline, t.baseline_proof as proof, a.attested_by as by, a.because
     from retl.mirror m left join retl.target t using (mirror_id) left join retl.attestation a using (target_id)
     where m.name = $1 order by 1`,
    [mirror],
  );
  return rows;
}

const ATTESTED = { baseline: 'new-empty', proof: 'attested', ...WORD };

describe('an attestation', () => {
  test('makes the baseline of its target known before the first run, with who and why', async () => {
    await attest('vouched');
    expect(await targets('vouched')).toEqual([{ key: targetOf('vouched'), ...ATTESTED }]);
    const listed = (await listMirrors(journal.runtime)).find(({ mirror }) => mirror === 'vouched');
    expect(listed).toMatchObject({
      strategy: 'snapshot-diff',
      baseline: 'new-empty',
      held: 0,
      lastRun: null,
    });
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'vouched' });
    expect(await run.record()).toMatchObject({ baseline: 'new-empty', held: 0 });
  });

  test('lets a first run go on that has stopped for want of it', async () => {
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'stopped' });
    await attest('stopped');
    expect(await run.record()).toMatchObject({ baseline: 'new-empty' });
  });

  test('is of one target: another one of the same mirror has none', async () => {
    await attest('moving');
    await attest('moving', 'another place');
    expect(await targets('moving')).toMatchObject([{ key: 'another place' }, { key: targetOf('moving') }]);
    const run = await ScriptedRun.open(journal.runtime, { mirror: 'moving', targetKey: 'a third place' });
    expect(await run.record()).toMatchObject({ baseline: null });
  });

  test('people who look see that there is one, and not whose words', async () => {
    const may = (role: string, column: string) =>
      `has_column_privilege('${role}', 'retl.attestation', '${column}', 'select')`;
    const { rows } = await journal.admin.query(
      `select ${may('retl_inspector', 'attested_at')} as looks, ${may('retl_inspector', 'because')} as reads,
         ${may('retl_reader', 'because')} as reader`,
    );
    expect(rows).toEqual([{ looks: true, reads: false, reader: true }]);
    expect(await stateOf(journal.admin.query('delete from retl.attestation'))).not.toBeNull();
  });
});

describe('is refused, with nothing changed', () => {
  const refusedAs = async (code: string, mirror: string, targetKey = targetOf(mirror)) => {
    const before = await targets(mirror);
    await expect(attest(mirror, targetKey)).rejects.toMatchObject({ code });
    expect(await targets(mirror)).toEqual(before);
  };

  test('where the baseline is known: by a run, or by a word', async () => {
    await ScriptedRun.whole(journal.runtime, { mirror: 'known' }, rowsOf({ a: '1' }));
    await refusedAs('run.baseline-known', 'known');
    await attest('twice');
    await refusedAs('run.baseline-known', 'twice');
  });

  test('where the mirror replaces its target, or the target is another’s', async () => {
    await ScriptedRun.open(journal.runtime, { mirror: 'replaces', strategy: 'native-replace' });
    await refusedAs('run.strategy-changed', 'replaces');
    await attest('first', 'shared');
    await refusedAs('run.target-owned', 'second', 'shared');
  });
});

describe('words in the mirror’s file', () => {
  test('vouch for one target: for another they say nothing, and nothing is noted', async () => {
    const vouch = async (targetKey: string, words: string) => {
      const run = await ScriptedRun.open(journal.runtime, { mirror: 'filed', targetKey });
      const isTaken = await recordBaseline(journal.runtime, run.attempt, 'new-empty', 'attested', words);
      const { baseline } = await run.record();
      await journal.admin.query(
        `update retl.run set closing = 'discarded', closed_at = now() where closing is null`,
      );
      return { isTaken, baseline };
    };
    expect(await vouch('a', 'K. made it')).toEqual({ isTaken: true, baseline: 'new-empty' });
    expect(await vouch('b', 'K. made it')).toEqual({ isTaken: false, baseline: null });
    expect(await vouch('b', 'L. made this one')).toEqual({ isTaken: true, baseline: 'new-empty' });
    expect(await vouch('a', 'K. made it')).toEqual({ isTaken: true, baseline: 'new-empty' });
  });
});
