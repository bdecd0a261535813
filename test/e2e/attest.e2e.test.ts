/** `baseline: new-empty` where the destination cannot be asked: nothing is sent before somebody vouches, for this very target. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { retl } from '../cli/support.ts';
import { FakeAudience } from '../support/fake-audience.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

/** An API of which nothing can be read. */
const MUTE = { destination: { verify_empty: undefined } };
const REASON = 'made the audience this morning';

async function attest(mirror: string, env: { readonly [name: string]: string } = {}) {
  const args = ['baseline', 'attest', mirror, '--empty', '--because', REASON, '--yes', '--json'];
  const { code, stdout } = await retl(args, { cwd: system.project.folder, env: { ...system.env, ...env } });
  return { code, told: JSON.parse(stdout) };
}

async function moveTo(scene: HttpScene, audience: FakeAudience): Promise<void> {
  await system.connect(`${scene.mirror}-api`, { type: 'http', base_url: audience.url });
}

async function anotherAudience(): Promise<FakeAudience> {
  const other = await FakeAudience.start({ idFields: ['id'] });
  system.defer(() => other.stop());
  return other;
}

const unknown = { kind: 'failed', message: expect.stringContaining('destination.baseline-unknown') };

describe('a target that cannot be looked at', () => {
  test('is not written before it is attested; each target needs its own word, and one that comes back keeps its members', async () => {
    const scene = await HttpScene.create(system, 'mute', MUTE);
    expect(await scene.run()).toMatchObject(unknown);
    expect(await attest('mute')).toMatchObject({ code: 0, told: { mirror: 'mute', attested: 'empty' } });
    // The run that had stopped goes on.
    expect((await scene.completed()).counts).toMatchObject({ added: 10 });

    const other = await anotherAudience();
    await moveTo(scene, other);
    await scene.exec(`delete from $table where id > 'm008'`);
    const before = scene.writes.length;
    expect(await scene.run()).toMatchObject(unknown);
    expect(other.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
    expect((await attest('mute')).code).toBe(0);
    expect((await scene.completed()).counts).toMatchObject({ added: 8, removed: 0 });
    expect(other.held).toHaveLength(8);
    expect(scene.writes).toHaveLength(before);

    await moveTo(scene, scene.audience);
    expect((await scene.completed()).counts).toMatchObject({ added: 0, unchanged: 8, removed: 2 });
    expect(scene.audience.state.members).toEqual(await scene.wanted());
    // Nobody's words come near Temporal.
    const said = await system.rows<{ n: string }>(
      `select count(*) as n from retl.attestation a join retl.target using (target_id) join retl.mirror m using (mirror_id)
       where m.name = 'mute' and a.because = $1 and a.attested_by like '%, as %'`,
      [REASON],
    );
    expect(said).toEqual([{ n: '2' }]);
    for await (const info of system.temporal.client.workflow.list()) {
      const { events } = await system.temporal.client.workflow
        .getHandle(info.workflowId, info.runId)
        .fetchHistory();
      expect(JSON.stringify(events)).not.toContain(Buffer.from(REASON).toString('base64').slice(0, 20));
      expect(JSON.stringify(events)).not.toContain(REASON);
    }
  });

  test('words in the mirror’s file vouch for the target that they were written for, and for no other', async () => {
    const baseline = { kind: 'new-empty', attested: 'K. made it today' };
    const scene = await HttpScene.create(system, 'filed', { ...MUTE, mirror: { baseline } });
    expect((await scene.completed()).counts).toMatchObject({ added: 10 });
    const other = await anotherAudience();
    await moveTo(scene, other);
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('vouched-for-another-target'),
    });
    await scene.configure({
      ...MUTE,
      mirror: { baseline: { ...baseline, attested: 'K. made the second, too' } },
    });
    expect((await scene.completed()).counts).toMatchObject({ added: 10 });
    expect(other.held).toHaveLength(10);
  });
});

describe('a role that only looks', () => {
  test('vouches for nothing, and leaves no trace', async () => {
    await HttpScene.create(system, 'looked-at', MUTE);
    await system.journal.query(
      `do $$ begin create role system_looks login password 'system_looks' in role retl_reader;
         exception when duplicate_object or unique_violation then null; end $$`,
    );
    const url = new URL(system.env.RETL_JOURNAL_URL ?? '');
    url.username = 'system_looks';
    if (url.password !== '') url.password = 'system_looks';
    const refused = await attest('looked-at', { RETL_JOURNAL_URL: url.href });
    expect(refused).toMatchObject({ code: 2, told: { error: { code: 'not-allowed' } } });
    expect(await system.rows(`select from retl.mirror where name = 'looked-at'`)).toEqual([]);
  });
});
