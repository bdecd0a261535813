/** What a sealed, open run would still do, member by member, at every stage of it (design.md section 4; rules 1, 6 and 8). */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PlannedMembers, plannedMembers } from '../../src/journal/planned-members.ts';
import { consistently } from '../../src/journal/pool.ts';
import { tellPlanned } from '../../src/planning/shown-members.ts';
import { GuardScene } from '../support/guard-scene.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';

const scene = new GuardScene();
beforeAll(() => scene.open());
afterAll(() => scene.close());

const idOf = ({ identity }: { readonly identity: string }): string => String(JSON.parse(identity).id);

async function members(run: ScriptedRun, limit = 100): Promise<PlannedMembers> {
  const found = await consistently(scene.journal.admin, async (db) => {
    // As a person who may read values, and has no other right.
    await db.query('set local role retl_reader');
    return plannedMembers(db, run.run, limit);
  });
  if (found === null) throw new Error('nothing is planned');
  return found;
}

/** The members of each kind, by id. */
async function shown(run: ScriptedRun, limit?: number) {
  const { added, changed, removed } = await members(run, limit);
  const ids = (list: readonly { readonly identity: string }[]) => list.map(idOf).sort().join('');
  return { added: ids(added), changed: ids(changed), removed: ids(removed) };
}

async function openedWith(letters: Readonly<Record<string, string>>, held: Readonly<Record<string, string>>) {
  const mirror = scene.name();
  const { runtime } = scene.journal;
  await ScriptedRun.whole(runtime, { mirror }, rowsOf(held));
  const run = await ScriptedRun.open(runtime, { mirror });
  await run.init();
  await run.load(rowsOf(letters));
  await run.seal();
  return run;
}

const same = (letters: string, payload: string) =>
  Object.fromEntries([...letters].map((id) => [id, payload]));

describe.each([
  ['a few changes, with bytes of their own', same('klmnopqrstuvwxyz', '1')],
  ['most members change, and stay in the generation', {}],
])('%s', (_, alike) => {
  const held = { ...alike, ...same('abcd', '1') };
  const wanted = { ...alike, ...same('ab', '2'), ...same('XY', '1') };

  test('rule 8: the whole of it is told from the journal while the guard is asked', async () => {
    const run = await openedWith(wanted, held);
    const { runtime } = scene.journal;
    expect(await consistently(runtime, (db) => plannedMembers(db, run.run, 9))).toBeNull();
    await run.plan();
    expect(await shown(run)).toEqual({ added: 'XY', changed: 'ab', removed: 'cd' });
    const { changed, removed } = tellPlanned(9, await members(run));
    expect(changed.find(({ identity }) => JSON.stringify(identity) === '{"id":"a"}')?.fields).toEqual([
      expect.objectContaining({ from: '1', to: '2' }),
    ]);
    expect(removed).toContainEqual({ identity: { id: 'c' } });
  });

  test('a limit is of each kind', async () => {
    const run = await openedWith(wanted, held);
    await run.plan();
    const { added, changed, removed } = await members(run, 1);
    expect([added, changed, removed].map((list) => list.length)).toEqual([1, 1, 1]);
  });

  test('rule 6: what is accepted already is not told any more, neither additions nor removals', async () => {
    const run = await openedWith(wanted, held);
    await run.plan();
    const [first] = await run.deliver('upsert', { size: 3, count: 1 });
    const rest = [...'abXY'].filter((id) => !first?.members.includes(id)).join('');
    const { added, changed, removed } = await shown(run);
    expect([...changed, ...added].sort().join('')).toBe([...rest].sort().join(''));
    expect(removed).toBe('cd');
    await run.deliver('upsert');
    await run.beginRemovals();
    expect(await shown(run)).toEqual({ added: '', changed: '', removed: 'cd' });
    const [gone] = await run.deliver('remove', { size: 1, count: 1 });
    expect((await shown(run)).removed).toBe(gone?.members[0] === 'c' ? 'd' : 'c');
  });
});
