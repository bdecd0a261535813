/** A target is asked what it holds (design, section 4, "Strategies": `tracked`): compared with the journal, or taken for the baseline. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { adoptListing, inspectListing } from '../../src/activities/adopt-baseline.ts';
import { type VerifyOptions, verifyBaseline } from '../../src/activities/verify-baseline.ts';
import { httpDestination } from '../../src/destinations/http/index.ts';
import { postgresDestination } from '../../src/destinations/postgres/index.ts';
import type { MirrorSettings } from '../../src/domain/settings.ts';
import { countRun } from '../../src/journal/run-record.ts';
import { verifyLog } from '../../src/journal/verify-log.ts';
import type { SourceAdapter } from '../../src/sources/port.ts';
import { createTarget } from '../contract/destination-postgres-kit.ts';
import { text } from '../domain/support.ts';
import { modelSettings } from '../model/adapters.ts';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';

let journal: TestJournal;
beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

type Members = Readonly<Record<string, string>>;

const SOURCE: SourceAdapter = {
  type: 'model',
  connectionSchema: z.object({}),
  open: () => Promise.reject(new Error('nothing is read')),
  describe: async () => [text('id'), text('v')],
};

/** A table, and a mirror that writes to it. */
async function createScene(mirror: string, members: Members, type = 'text', key = 'PRIMARY KEY') {
  const target = await createTarget(
    `CREATE TABLE audience (id text ${key}, v ${type}, others int DEFAULT 7); GRANT SELECT ON audience TO :role;`,
  );
  const write = (id: string, v: string) =>
    target.admin.query(
      `INSERT INTO audience VALUES ('${id}', '${v}') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v`,
    );
  for (const [id, v] of Object.entries(members)) await write(id, v);
  const connection = target.connection();
  const { host, port, database, user, password } = connection;
  const settings: MirrorSettings = {
    ...modelSettings(mirror, { rows: 1_000, inFlight: 8, kind: 'manual', asynchronous: false }),
    baseline: { kind: 'tracked', attested: null },
    destination: {
      type: 'postgres',
      connection: 'db',
      connectionOptions: { host, port, database, user, password },
      options: { table: 'audience' },
    },
  };
  const options = postgresDestination.optionsSchema.parse({ table: 'audience' });
  const targetKey = postgresDestination.targetKey(connection, options);
  const deps = {
    sources: [SOURCE],
    destinations: [postgresDestination, httpDestination],
    configuration: {
      mirror: async () => settings,
      text: () => JSON.stringify({ mirror }),
      parse: () => settings,
      resolve: (resolved: MirrorSettings['destination']['options']) => resolved,
      projection: () => Promise.reject(new Error('there is no module')),
    },
    logger: { info: () => undefined, warn: () => undefined },
  };
  const looking = { signal: new AbortController().signal, onProgress: () => undefined };
  const word = { by: 'ada', because: 'the old job was stopped' };
  return {
    target,
    settings,
    deps,
    write,
    run: (desired: Members) =>
      ScriptedRun.whole(journal.runtime, { mirror, targetKey, tracked: true }, rowsOf(desired)),
    open: () => ScriptedRun.open(journal.runtime, { mirror, targetKey }),
    verify: (more: Partial<VerifyOptions> = {}) =>
      verifyBaseline(deps, journal.runtime, settings, { ...looking, identities: null, ...more }),
    inspect: () => inspectListing(deps, settings, looking),
    adopt: (digest: string) => adoptListing(deps, journal.runtime, settings, { ...word, digest }, looking),
  };
}

/** One with a first run behind it, as its table shows. */
async function begun(mirror: string, members: Members, type?: string) {
  const scene = await createScene(mirror, members, type);
  const { digest } = await scene.inspect();
  await scene.adopt(digest);
  await scene.run(members);
  return scene;
}

const many = (count: number): Members =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`m${n}`, String(n)]));

async function stateOf(scene: Awaited<ReturnType<typeof createScene>>) {
  const { rows } = await journal.admin.query(
    `select (select count(*) from retl.run) as runs, (select count(*) from retl.attempt) as attempts,
       (select max(position) from retl.log_entry) as head, (select count(*) from retl.batch) as batches`,
  );
  return [rows, await scene.target.rows('SELECT * FROM audience ORDER BY id')];
}

describe('a target that is compared with the journal', () => {
  test('agrees, over many pages, with what was accepted', async () => {
    const scene = await begun('agrees', many(2_100));
    expect(await scene.verify()).toMatchObject({
      known: true,
      held: 2_100,
      listed: 2_100,
      same: 2_100,
      missing: 0,
      unexpected: 0,
      different: 0,
      moving: false,
      identities: null,
    });
  });

  test('lies: rows that are gone, new or changed are told, by their values where one may see them, and nothing is changed', async () => {
    const scene = await begun('lies', many(10));
    await scene.target.admin.query(`DELETE FROM audience WHERE id IN ('m1', 'm2')`);
    await scene.write('m3', 'another');
    await scene.write('stranger', '1');
    const before = await stateOf(scene);
    expect(await scene.verify({ identities: 1 })).toMatchObject({
      held: 10,
      listed: 9,
      same: 7,
      missing: 2,
      unexpected: 1,
      different: 1,
      identities: { limit: 1, missing: [{ id: expect.stringMatching(/^m[12]$/) }] },
    });
    expect((await scene.verify({ identities: 5 })).identities).toMatchObject({
      unexpected: [{ id: 'stranger' }],
      different: [{ id: 'm3' }],
    });
    expect(await stateOf(scene)).toEqual(before);
  });

  test('bigint/numeric: a payload is compared as the column keeps it, not as it was spelled', async () => {
    const scene = await begun('spelled', { a: '0.10', b: '2.00' }, 'numeric(6,2)');
    await scene.run({ a: '0.1', b: '2' });
    expect(await scene.verify()).toMatchObject({ same: 2, different: 0 });
    await scene.write('b', '2.01');
    expect(await scene.verify()).toMatchObject({ same: 1, different: 1 });
  });

  test('before the first run it is held against the baseline, whose payloads nobody knows', async () => {
    const scene = await createScene('early', { a: '1', b: '1' });
    expect(await scene.verify()).toMatchObject({ known: false, held: 0, listed: 2, unexpected: 2 });
    await scene.adopt((await scene.inspect()).digest);
    await scene.target.admin.query(`DELETE FROM audience WHERE id = 'b'`);
    expect(await scene.verify()).toMatchObject({ known: true, held: 2, uncompared: 1, missing: 1, same: 0 });
  });

  test('says that a run is under way: what it sends may be among the differences', async () => {
    const scene = await begun('moving', { a: '1' });
    await scene.open();
    expect(await scene.verify()).toMatchObject({ same: 1, moving: true });
  });

  test('cursor-leak: one that is stopped half-way leaves no transaction at the target, and no verdict', async () => {
    const scene = await begun('stopped', many(2_100));
    const control = new AbortController();
    const stopped = scene.verify({ signal: control.signal, onProgress: () => control.abort() });
    await expect(stopped).rejects.toMatchObject({ code: 'destination.unavailable' });
    const open = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE usename = '${scene.target.role}' AND xact_start IS NOT NULL`;
    await expect.poll(() => scene.target.rows(open)).toEqual([{ n: 0 }]);
    expect(await scene.verify()).toMatchObject({ same: 2_100 });
  });

  test('two-writers: that belongs to another mirror is not compared; nor is one that cannot list', async () => {
    const scene = await begun('owner', { a: '1' });
    const other = { ...scene.settings, mirror: 'other' };
    const options = { identities: null, signal: new AbortController().signal, onProgress: () => undefined };
    await expect(verifyBaseline(scene.deps, journal.runtime, other, options)).rejects.toMatchObject({
      code: 'run.target-owned',
    });
    const api = {
      ...scene.settings,
      destination: {
        type: 'http',
        connection: 'api',
        connectionOptions: { base_url: 'http://127.0.0.1:1' },
        options: { upsert: { method: 'POST', path: '/m' }, remove: { method: 'DELETE', path: '/m' } },
      },
    };
    await expect(verifyBaseline(scene.deps, journal.runtime, api, options)).rejects.toMatchObject({
      code: 'destination.cannot-list',
    });
    await scene.target.admin.query('ALTER TABLE audience RENAME COLUMN v TO w');
    await expect(scene.verify()).rejects.toMatchObject({ code: 'destination.misconfigured' });
  });
});

test('transformed-key: a baseline that was listed by one column is neither compared nor listed by another', async () => {
  const scene = await createScene('other-column', { a: '1' });
  const shown = await scene.inspect();
  await scene.adopt(shown.digest);
  const options = { table: 'audience', columns: { id: 'v' } };
  const { settings } = scene;
  const moved = { ...settings, destination: { ...settings.destination, options } };
  const looking = { signal: new AbortController().signal, onProgress: () => undefined };
  const refused = { code: 'run.identity-moved' };
  const compared = verifyBaseline(scene.deps, journal.runtime, moved, { ...looking, identities: null });
  await expect(compared).rejects.toMatchObject(refused);
  const order = { by: 'ada', because: 'a test', digest: shown.digest };
  const deps = { ...scene.deps, configuration: { ...scene.deps.configuration, mirror: async () => moved } };
  await expect(adoptListing(deps, journal.runtime, moved, order, looking)).rejects.toMatchObject(refused);
  expect(await scene.verify()).toMatchObject({ held: 1, uncompared: 1 });
});

describe('null-key: rows without an identity', () => {
  test('are unexpected, however many, and no lost connection; they are taken for nobody’s baseline', async () => {
    const scene = await createScene('nobodys', { a: '1', b: '1' }, 'text', 'UNIQUE');
    await scene.adopt((await scene.inspect()).digest);
    await scene.run({ a: '1', b: '1' });
    await scene.target.admin.query(`INSERT INTO audience VALUES (NULL, '1'), (NULL, '1'), (NULL, '2')`);
    expect(await scene.verify({ identities: 5 })).toMatchObject({
      listed: 5,
      same: 2,
      unexpected: 3,
      repeated: 0,
      identities: { unexpected: [{ id: null }, { id: null }, { id: null }] },
    });
    await expect(scene.inspect()).rejects.toMatchObject({
      code: 'data.baseline-listing',
      details: { rule: 'identity-null' },
    });
  });
});

describe('a listing that becomes the baseline', () => {
  test('is operations with log entries, verified and not attested; the first run adds, sends what stays, and removes leftovers', async () => {
    const scene = await createScene('adopted', { a: '1', b: '1', left: '1' });
    const shown = await scene.inspect();
    expect(shown).toMatchObject({ rows: 3, members: 3, collapsed: 0 });
    expect(await scene.adopt(shown.digest)).toBe(3);
    const { rows } = await journal.admin.query(
      `select t.baseline, t.baseline_proof, i.listed, i.imported_by from retl.import i join retl.run r using (run_id)
       join retl.target t on t.target_id = r.target_id join retl.mirror m on m.mirror_id = r.mirror_id where m.name = 'adopted'`,
    );
    expect(rows).toEqual([
      { baseline: 'tracked', baseline_proof: 'verified', listed: true, imported_by: 'ada' },
    ]);
    const run = await scene.run({ a: '1', b: '2', c: '1' });
    expect(await countRun(journal.runtime, run.run)).toMatchObject({
      added: 1,
      changed: 2,
      removed: 1,
      unchanged: 0,
    });
    expect(await verifyLog(journal.runtime, { effects: true })).toMatchObject({ kind: 'intact' });
    await expect(scene.adopt(shown.digest)).rejects.toMatchObject({ code: 'run.baseline-known' });
  });

  test('is not taken where it is another one by then, or lists nobody, and leaves no trace', async () => {
    const scene = await createScene('moved-on', { a: '1' });
    const { digest } = await scene.inspect();
    await scene.write('b', '1');
    await expect(scene.adopt(digest)).rejects.toMatchObject({ code: 'run.baseline-moved' });
    await scene.target.admin.query('TRUNCATE audience');
    await expect(scene.inspect()).rejects.toMatchObject({
      code: 'data.baseline-listing',
      details: { rule: 'no-rows' },
    });
    const { rows } = await journal.admin.query(`select from retl.mirror where name = 'moved-on'`);
    expect(rows).toEqual([]);
  });
});
