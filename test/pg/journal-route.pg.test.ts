/**
 * What decides where requests arrive and is no part of a target's key (design.md section 2, "target"): where it is not what it
 * was, the guard asks before anything is sent, and neither a number nor a saved plan answers for a person.
 */

import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decide } from '../../src/journal/approvals.ts';
import { type AdmitRequest, admit, guard } from '../../src/journal/runs.ts';
import { ownerAmong, standingOf } from '../../src/journal/standing.ts';
import { movedOf } from '../../src/planning/moved.ts';
import { GuardScene, HELD, members, question } from '../support/guard-scene.ts';
import { admission, ScriptedRun } from '../support/journal-run.ts';

const scene = new GuardScene();
beforeAll(() => scene.open());
afterAll(() => scene.close());

const hash = (text: string) => createHash('sha256').update(text).digest();
const via = (credentials: string, removals: string) => ({
  route: { credentials: hash(credentials), removals: hash(removals) },
});
const HERE = via('token a', '/42');

/** A planned run of `letters`, ready for the guard. */
async function next(mirror: string, letters: string, more: Partial<AdmitRequest>): Promise<ScriptedRun> {
  const run = await ScriptedRun.open(scene.journal.runtime, { mirror, ...more });
  await run.init();
  await run.load(members(letters));
  await run.seal();
  return run;
}

async function held(more: Partial<AdmitRequest> = HERE): Promise<string> {
  const mirror = scene.name();
  await ScriptedRun.whole(scene.journal.runtime, { mirror, ...more }, members(HELD));
  return mirror;
}

async function abort({ run, attempt }: ScriptedRun): Promise<void> {
  await scene.journal.runtime.query(`select retl.close_run($1, $2, 'aborted', null)`, [run, attempt.epoch]);
}

describe('a run that would arrive elsewhere than the one before it', () => {
  test.each([
    ['credentials-changed', via('token b', '/42')],
    ['removals-moved', via('token a', '/43')],
    ['route-changed', via('token b', '/43')],
  ])('%s: it parks although it removes nobody, and a plan foresees it', async (code, there) => {
    const mirror = await held();
    const run = await next(mirror, `${HELD}X`, there);
    expect(question(await run.plan())).toMatchObject({ code, removals: 0, held: 10 });
    expect((await run.record()).phase).toBe('guard');
    const { target, openRun } = await standingOf(
      scene.journal.runtime,
      mirror,
      (await run.record()).targetKey,
    );
    expect(movedOf(target?.route ?? null, there.route)).toBe(code);
    expect(openRun?.moved).toBe(code);
  });

  test('neither a number nor a saved plan approves it', async () => {
    const run = await next(await held(), 'abcdef', via('token b', '/42'));
    expect(await run.plan({ approveUpTo: 10 })).toMatchObject({ kind: 'held', code: 'credentials-changed' });
    const plan = await scene.planOf(run);
    expect(await guard(scene.journal.runtime, run.attempt, { plan })).toMatchObject({ kind: 'held' });
  });

  test('approved it is the way from then on, and the way back is asked about as well', async () => {
    const mirror = await held();
    const run = await next(mirror, HELD, via('token b', '/43'));
    const { shown } = question(await run.plan());
    const word = { verdict: 'approved', by: 'ann', because: null, via: 'cli' } as const;
    expect(await decide(scene.journal.runtime, { run: run.run, shown, ...word })).toEqual({
      kind: 'recorded',
    });
    expect(await guard(scene.journal.runtime, run.attempt)).toEqual({ kind: 'passed' });
    await run.complete();
    const same = await next(mirror, HELD, via('token b', '/43'));
    expect(await same.plan()).toEqual({ kind: 'passed' });
    await same.complete();
    const back = await next(mirror, HELD, HERE);
    expect(await back.plan()).toMatchObject({ kind: 'held', code: 'route-changed' });
  });

  test('one that was turned away changes nothing: the next by the old way passes', async () => {
    const mirror = await held();
    const away = await next(mirror, HELD, via('token b', '/42'));
    await away.plan();
    await abort(away);
    expect(await (await next(mirror, HELD, HERE)).plan()).toEqual({ kind: 'passed' });
  });
});

describe('nothing is asked', () => {
  test('of a target that holds nobody, of an adapter that has nothing to say, and of the same way', async () => {
    const empty = await held({});
    expect(await (await next(empty, HELD, HERE)).plan()).toEqual({ kind: 'passed' });
    const mirror = scene.name();
    const first = await next(mirror, 'a', HERE);
    await first.plan();
    await abort(first);
    const second = await next(mirror, 'a', via('token b', '/43'));
    expect(await second.plan()).toEqual({ kind: 'passed' });
  });

  test('but rule 6: what an aborted first run had accepted is held, and asked about', async () => {
    const mirror = scene.name();
    const first = await next(mirror, HELD, HERE);
    expect(await first.plan()).toEqual({ kind: 'passed' });
    await first.deliver('upsert');
    await abort(first);
    const second = await next(mirror, HELD, via('token b', '/42'));
    expect(await second.plan()).toMatchObject({ kind: 'held', code: 'credentials-changed', held: 10 });
  });
});

describe('a mirror whose removals would go into a target of another', () => {
  test('is refused with nothing opened, and both are as they were', async () => {
    const owner = await held();
    const { rows } = await scene.journal.admin.query<{ target_key: string }>(
      'select target_key from retl.target join retl.mirror using (mirror_id) where name = $1',
      [owner],
    );
    const removesFrom = rows.map(({ target_key }) => target_key);
    expect(removesFrom).toHaveLength(1);
    const copy = admission({ mirror: scene.name(), removesFrom });
    const refused = { kind: 'refused', code: 'removes-elsewhere', owner };
    expect(await admit(scene.journal.runtime, copy)).toEqual(refused);
    expect(await ownerAmong(scene.journal.runtime, copy.mirror, removesFrom)).toBe(owner);
    const known = await scene.journal.admin.query('select from retl.mirror where name = $1', [copy.mirror]);
    expect(known.rowCount).toBe(0);
    const own = admission({ mirror: owner, removesFrom });
    expect(await admit(scene.journal.runtime, own)).toMatchObject({ kind: 'admitted' });
  });
});
