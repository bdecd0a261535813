/** Who owns a target (design.md section 4, admit): a mirror that has sent something there, or may be about to; else nobody. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { attestBaseline } from '../../src/activities/attest-baseline.ts';
import { admit, closeRun, releaseRun } from '../../src/journal/runs.ts';
import { standingOf } from '../../src/journal/standing.ts';
import { MIRROR_SIGNS } from '../../src/journal/vital-signs.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { admission, rowsOf, ScriptedRun } from '../support/journal-run.ts';

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

/** What another mirror is told that wants the target. */
const wants = (mirror: string, targetKey: string, tracked = false) =>
  admit(journal.runtime, admission({ mirror, targetKey, tracked }));
const owned = (owner: string) => ({ kind: 'refused', code: 'target-owned', owner });

describe('a target is free again', () => {
  test('when a first run is closed before it has opened a session', async () => {
    const targetKey = 'refused';
    const first = await ScriptedRun.open(journal.runtime, { mirror: 'refused-a', targetKey });
    expect(await wants('refused-b', targetKey)).toEqual(owned('refused-a'));
    await closeRun(journal.runtime, first.attempt, 'invalid', 'destination.not-empty');
    expect((await standingOf(journal.runtime, 'refused-b', targetKey)).target).toBeNull();
    expect(await wants('refused-b', targetKey, true)).toEqual({ kind: 'refused', code: 'baseline-missing' });
    // A refusal takes nothing: the former mirror may still come back.
    const again = await ScriptedRun.open(journal.runtime, { mirror: 'refused-a', targetKey });
    await closeRun(journal.runtime, again.attempt, 'invalid', 'destination.not-empty');
    const second = await ScriptedRun.whole(
      journal.runtime,
      { mirror: 'refused-b', targetKey },
      rowsOf({ a: '1', b: '2' }),
    );
    expect(await second.record()).toMatchObject({ held: 2, closing: 'completed' });
    expect(await wants('refused-a', targetKey)).toEqual(owned('refused-b'));
  });

  test('when all that was ever prepared for it was never sent, and then nothing of the former mirror counts', async () => {
    const targetKey = 'unsent';
    const first = await ScriptedRun.open(journal.runtime, { mirror: 'unsent-a', targetKey });
    await first.upToAdditions(rowsOf({ a: '1' }));
    await first.prepare('upsert', 1);
    expect(await wants('unsent-b', targetKey)).toEqual(owned('unsent-a'));
    await closeRun(journal.runtime, first.attempt, 'aborted', null);
    const second = await ScriptedRun.open(journal.runtime, { mirror: 'unsent-b', targetKey });
    expect(await second.record()).toMatchObject({
      held: 0,
      baseline: null,
      identityFoldings: [],
      formerOwners: ['unsent-a'],
    });
    await second.upToAdditions(rowsOf({ a: '1', b: '2' }));
    await second.complete();
    const { rows } = await journal.admin.query(`select s.mirror, s.held from (${MIRROR_SIGNS}) s order by 1`);
    expect(rows.filter(({ mirror }) => String(mirror).startsWith('unsent'))).toEqual([
      { mirror: 'unsent-a', held: '0' },
      { mirror: 'unsent-b', held: '2' },
    ]);
  });
});

test('rule 9: a former mirror that owns another target may hold the fence of this very place, by another key', async () => {
  await ScriptedRun.whole(journal.runtime, { mirror: 'two-keys' }, rowsOf({ a: '1' }));
  const first = await ScriptedRun.open(journal.runtime, { mirror: 'two-keys', targetKey: 'by another key' });
  await closeRun(journal.runtime, first.attempt, 'invalid', 'destination.not-empty');
  const second = await ScriptedRun.open(journal.runtime, { mirror: 'late', targetKey: 'by another key' });
  expect(await second.record()).toMatchObject({ formerOwners: [] });
});

describe('a target stays its mirror’s', () => {
  test('rule 3: once a member was on its way, whatever became of it', async () => {
    const targetKey = 'sent';
    const first = await ScriptedRun.open(journal.runtime, { mirror: 'sent-a', targetKey });
    await first.upToAdditions(rowsOf({ a: '1' }));
    const [batch] = await first.prepare('upsert', 1);
    if (batch === undefined) throw new Error('nothing prepared');
    await first.sending(batch.id);
    await first.settle(batch, new Set(['a']));
    await closeRun(journal.runtime, first.attempt, 'rejected', 'refused-row');
    expect(await wants('sent-b', targetKey)).toEqual(owned('sent-a'));
    expect((await standingOf(journal.runtime, 'sent-b', targetKey)).target?.owner).toBe('sent-a');
  });

  test('while a run of it can be resumed, and after a word was given for it', async () => {
    const first = await ScriptedRun.open(journal.runtime, { mirror: 'let-go', targetKey: 'let go' });
    await releaseRun(journal.runtime, first.attempt, 'failed', null);
    expect(await wants('other', 'let go')).toEqual(owned('let-go'));
    await attestBaseline(journal.runtime, 'word', 'of a word', { by: 'ada', because: 'made it' });
    expect(await wants('other', 'of a word')).toEqual(owned('word'));
  });

  test('two-writers: of two mirrors that come to a free target at once, with its former one, only one is admitted', async () => {
    for (let round = 0; round < 4; round++) {
      const targetKey = `raced ${round}`;
      const first = await ScriptedRun.open(journal.runtime, { mirror: `former-${round}`, targetKey });
      await closeRun(journal.runtime, first.attempt, 'invalid', 'destination.not-empty');
      const answers = await Promise.all(
        ['former', 'left', 'right'].map((m) => wants(`${m}-${round}`, targetKey)),
      );
      expect(answers.map(({ kind }) => kind).sort()).toEqual(['admitted', 'refused', 'refused']);
    }
  });
});
