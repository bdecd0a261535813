/** `retl resolve`: an operator’s word on a batch that nobody can verify, from the blocked run to its completion. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const run = (...args: readonly string[]) => retl(args, { cwd: system.project.folder, env: system.env });

/** A run that is blocked on its first batch, as a job in CI would see it. */
async function blockedRun(name: string, applied: boolean) {
  const scene = await HttpScene.create(system, name, { rows: 8 });
  scene.audience.fault({ kind: 'reset', applied });
  const { code, stderr } = await run('run', name);
  expect(code).toBe(6);
  const batch = /sha256:[0-9a-f]{64}/.exec(stderr)?.[0] ?? '';
  return { scene, batch, handle: system.temporal.client.workflow.getHandle(`mirror/${name}`) };
}

test('blind-replay: stored, then the connection was reset: `--accepted` lets the run complete, with no second POST of it', async () => {
  const { scene, batch, handle } = await blockedRun('stored', true);
  const status = await run('status', 'stored');
  expect(status.stdout).toContain(`${batch}  unknown: 5 additions or changes`);
  expect(status.stdout).toContain('retl resolve stored');
  expect(JSON.parse((await run('status', 'stored', '--json')).stdout)).toMatchObject({
    mirrors: [{ unresolved: [{ batch, state: 'unknown', action: 'upsert', members: 5 }] }],
  });

  const word = await run('resolve', 'stored', batch, '--accepted', '--because', 'read it back', '--yes');
  expect(word.stdout).toContain('Recorded as accepted.\nThe run was told to look again.');
  expect(word.code).toBe(0);
  expect(await handle.result()).toMatchObject({ outcome: 'completed', counts: { added: 8 } });
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  expect(scene.audience.state.effects).toHaveLength(8);
  expect(
    await system.rows('select resolved_because from retl.batch where resolved_because is not null'),
  ).toEqual([{ resolved_because: 'read it back' }]);

  const again = await run('resolve', 'stored', batch, '--not-applied', '--because', 'no', '--yes', '--json');
  expect(JSON.parse(again.stdout)).toMatchObject({ error: { code: 'settled' } });
  expect(again.code).toBe(3);
});

test('rule 3: `--not-applied` is refused before the send deadline; after it the members are sent again', async () => {
  const { scene, batch, handle } = await blockedRun('lost', false);
  const words = ['resolve', 'lost', batch, '--not-applied', '--because', 'not in its log', '--yes'];
  const early = await run(...words);
  expect(early.stderr).toMatch(/may still reach the destination for \d/);
  expect(early.code).toBe(3);
  expect(await scene.batches('upsert')).toMatchObject([{ state: 'unknown' }]);

  await system.rows(
    `update retl.batch set send_deadline = clock_timestamp() where batch_id = decode($1, 'hex')`,
    [batch.slice('sha256:'.length)],
  );
  expect(await run(...words, '--json')).toMatchObject({ code: 0 });
  expect(await handle.result()).toMatchObject({ outcome: 'completed', counts: { added: 8 } });
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  expect(scene.audience.state.effects).toHaveLength(8);
  expect(scene.writes).toHaveLength(3);
});

/** What docs/blocked-runs.md has an operator ask the journal: the identities of a batch. */
async function membersOf(batch: string): Promise<readonly string[]> {
  const page = await readFile(join(import.meta.dirname, '../../docs/blocked-runs.md'), 'utf8');
  const [where = '', members = ''] = (/```sql\n(.*?)```/s.exec(page)?.[1] ?? '').split(/(?<=;)\n/);
  const [range] = await system.rows(where.replace(/'6eb2…'/, `'${batch.slice('sha256:'.length)}'`));
  const [generation] = await system.rows('select generation_id from retl.generation where run_id = $1', [
    range?.run_id,
  ]);
  const filled = members
    .replace('<run>', String(range?.run_id))
    .replace('<generation>', String(generation?.generation_id))
    .replace('<first>', String(range?.first))
    .replace('<last>', String(range?.last));
  return (await system.rows(filled)).map((row) => JSON.parse(String(row.identity)).id);
}

test('only a part was applied: brought to one of the two by hand, the verdict is true, and the run ends exact', async () => {
  for (const [name, verdict] of [
    ['half-added', '--accepted'],
    ['half-deleted', '--not-applied'],
  ] as const) {
    const { scene, batch, handle } = await blockedRun(name, true);
    const { members } = scene.audience.state;
    const ids = await membersOf(batch);
    expect(ids.toSorted()).toEqual([...members.keys()].toSorted());
    for (const id of ids.slice(2)) members.delete(id);
    const wanted = await scene.wanted();
    for (const id of ids) {
      if (verdict === '--accepted') members.set(id, wanted.get(id));
      else members.delete(id);
    }
    await system.rows(
      `update retl.batch set send_deadline = clock_timestamp() where batch_id = decode($1, 'hex')`,
      [batch.slice('sha256:'.length)],
    );
    const word = await run('resolve', name, batch, verdict, '--because', 'half of it was there', '--yes');
    expect(word.code).toBe(0);
    expect(await handle.result()).toMatchObject({ outcome: 'completed', counts: { added: 8 } });
    expect(members).toEqual(wanted);
  }
}, 180_000);

test('a run that has ended meanwhile is taken up by the next one', async () => {
  const { scene, batch, handle } = await blockedRun('left', true);
  // Whoever starts it once more is told what is missing, and by which command.
  const second = await run('run', 'left');
  expect(second.stderr).toContain(`\`retl resolve left ${batch} --accepted\``);
  expect(second.code).toBe(3);
  await scene.signal('cancel');
  await handle.result();
  const word = await run('resolve', 'left', batch, '--accepted', '--because', 'read it back', '--yes');
  expect(word.stdout).toContain('`retl run left` takes this one up');
  expect(word.code).toBe(0);
  expect((await run('run', 'left')).code).toBe(0);
  expect(scene.audience.state.effects).toHaveLength(8);
});

test('nothing is decided without a batch of this mirror, one verdict, a reason, and somebody’s yes', async () => {
  const { scene, batch, handle } = await blockedRun('careful', true);
  const none = `sha256:${'0'.repeat(64)}`;
  const why = ['--because', 'read it back'];
  for (const [args, words] of [
    [['careful', none, '--accepted', ...why, '--yes'], 'knows no batch of this id'],
    [['left', batch, '--accepted', ...why, '--yes'], 'belongs to another mirror, careful'],
    [['careful', 'sha256:12', '--accepted', ...why, '--yes'], '64 hex digits'],
    [['careful', batch, ...why, '--yes'], 'either --accepted or --not-applied'],
    [
      ['careful', batch, '--accepted', '--not-applied', ...why, '--yes'],
      'either --accepted or --not-applied',
    ],
    [['careful', batch, '--accepted', '--yes'], 'A reason is needed'],
    [['careful', batch, '--accepted', '--because', ' ', '--yes'], 'reason is empty'],
    [['careful', batch, '--accepted', ...why], 'add --yes'],
  ] as const) {
    const { code, stderr } = await run('resolve', ...args);
    expect(stderr).toContain(words);
    expect(code).toBe(2);
  }
  expect(await scene.batches('upsert')).toMatchObject([{ state: 'unknown' }]);

  // Another request of the run on its way: a verdict would fence the attempt that waits for its answer.
  const [flying] = await system.rows(
    `insert into retl.batch (batch_id, run_id, action, sending, state, request_hash, request_bytes, prepared_epoch,
       sent_epoch, sent_at, send_deadline)
     select sha256('flying'), run_id, 'finish', 1, 'sending', sha256('null'), 4, epoch, epoch, now(),
       now() + interval '90 s'
     from retl.run join retl.batch b using (run_id) where b.batch_id = decode($1, 'hex')
     returning encode(batch_id, 'hex') as id`,
    [batch.slice('sha256:'.length)],
  );
  const early = await run('resolve', 'careful', batch, '--accepted', ...why, '--yes');
  expect(early.stderr).toMatch(/Another request of this run is under way\..*Nothing was changed/s);
  expect(early.stderr).toMatch(/Try again when the run waits, at the latest in \d+s/);
  expect(early.code).toBe(3);
  await system.rows(`delete from retl.batch where batch_id = decode($1, 'hex')`, [flying?.id]);
  await scene.signal('cancel');
  await handle.result();
});
