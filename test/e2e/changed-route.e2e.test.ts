/**
 * A mirror whose settings come to lead into another account, or take members out elsewhere (design.md section 2, "target"):
 * nothing is sent before a person has said that it is meant.
 */

import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { retl } from '../cli/support.ts';
import { FakeAudience } from '../support/fake-audience.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy, ending } from '../support/system-scene.ts';

const TOKENS = { TOKEN_A: 'first-account', TOKEN_B: 'second-account', TOKEN_A2: 'first-account' };
let system: System;
beforeAll(async () => {
  system = await System.start({ env: TOKENS });
  await system.startWorker();
});
afterAll(() => system.stop());

/** One address, and behind it the account that the bearer token opens. */
async function bank(accounts: { readonly [token: string]: FakeAudience }): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    const token = String(incoming.headers.authorization).replace('Bearer ', '');
    const { url = '', method = '', headers } = incoming;
    const onward = request(`${accounts[token]?.url}${url}`, { method, headers }, (reply) => {
      outgoing.writeHead(reply.statusCode ?? 500, reply.headers);
      reply.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  system.defer(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A mirror of ten members into the first account; the second one holds the same people on its own. */
async function twoAccounts(name: string, named: { readonly account?: string } = {}) {
  const scene = await HttpScene.create(system, name, { rows: 10 });
  const second = await FakeAudience.start({ idFields: ['id'] });
  system.defer(() => second.stop());
  const base_url = await bank({ 'first-account': scene.audience, 'second-account': second });
  const connect = (token: keyof typeof TOKENS, more: object = named) =>
    system.connect(`${name}-api`, {
      type: 'http',
      base_url,
      auth: { bearer: `\${env:${token}}` },
      ...more,
    });
  await connect('TOKEN_A');
  await scene.completed();
  for (const [id, found] of scene.audience.state.members) second.state.members.set(id, found);
  await scene.exec(`delete from $table where id > 'm007'`);
  return { scene, second, connect };
}

describe.concurrent('other credentials at the same address', () => {
  test('park the run: nobody is removed from the other account, and check and plan say so beforehand', async () => {
    const { scene, second, connect } = await twoAccounts('other-account');
    await connect('TOKEN_B');
    const cli = { cwd: system.project.folder, env: system.env };
    expect((await retl(['check', 'other-account'], cli)).stdout).toContain('credentials-changed');
    expect((await retl(['plan', 'other-account'], cli)).stdout).toContain('perhaps into another account');
    const handle = await scene.start();
    const asked = await scene.untilParked(handle);
    expect(asked).toMatchObject({ code: 'credentials-changed', removals: 3, held: 10 });
    const { stdout } = await retl(['status', 'other-account'], cli);
    expect(stdout).toContain('by other credentials');
    await scene.answer(handle, 'reject', asked);
    await ending(handle);
    expect(second.held).toHaveLength(10);
    expect(second.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
    await connect('TOKEN_A');
    expect((await scene.completed()).counts).toMatchObject({ removed: 3 });
    expect(scene.audience.held).toHaveLength(7);
  });

  test('of the same account go on once that is said, and by a name that both give nothing is asked', async () => {
    const { scene, connect } = await twoAccounts('same-account');
    await connect('TOKEN_A2');
    const handle = await scene.start();
    await scene.answer(handle, 'approve', await scene.untilParked(handle));
    expect((await completedBy(handle)).counts).toMatchObject({ removed: 3 });
    const named = await twoAccounts('named-account', { account: 'acme' });
    await named.connect('TOKEN_A2');
    expect((await named.scene.completed()).counts).toMatchObject({ removed: 3 });
    // Another name is another target, which here holds members of its own.
    await named.connect('TOKEN_B', { account: 'other' });
    expect(await ending(await named.scene.start())).toMatchObject({ kind: 'failed' });
    expect(named.second.held).toHaveLength(10);
  });
});

test('a removal that goes elsewhere than before parks the run, and nobody is removed there', async () => {
  const scene = await HttpScene.create(system, 'moved-removal', { rows: 10 });
  await scene.completed();
  await scene.exec(`delete from $table where id > 'm007'`);
  await scene.configure({ destination: { remove: { method: 'DELETE', path: '/others' } } });
  const before = scene.writes.length;
  const handle = await scene.start();
  expect(await scene.untilParked(handle)).toMatchObject({ code: 'removals-moved', removals: 3 });
  expect(scene.writes).toHaveLength(before);
});

test('a copied mirror that removes where another one adds is refused before anything is sent, and check says so', async () => {
  const scene = await HttpScene.create(system, 'original', { rows: 10 });
  await scene.completed();
  const copy = new HttpScene(system, 'copied', scene.table, scene.audience);
  await copy.configure({
    destination: {
      connection: 'original-api',
      upsert: { method: 'POST', path: '/lapsed' },
      verify_empty: { path: '/lapsed', list: '' },
    },
  });
  const cli = { cwd: system.project.folder, env: system.env };
  for (const command of ['check', 'plan']) {
    const said = await retl([command, 'copied'], cli);
    expect(said.stdout + said.stderr, command).toContain('run.removes-elsewhere');
  }
  const before = scene.writes.length;
  const end = await ending(await copy.start());
  expect(JSON.stringify(end)).toContain('run.removes-elsewhere');
  expect(scene.writes).toHaveLength(before);
  expect(scene.audience.held).toHaveLength(10);
});
