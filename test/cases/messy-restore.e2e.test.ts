/** A journal that was restored to an earlier time: runs of the future have left their marks at the destination. */

import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';

let database: TestDatabase;
let system: System;
beforeAll(async () => {
  database = await createTestDatabase();
  system = await System.start({ journal: database });
});
afterAll(async () => {
  await system.stop();
  await database.drop();
});

async function onServer(...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: database.adminUrl });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

const name = () => new URL(database.url).pathname.slice(1);
const alone = () =>
  `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name()}' and pid <> pg_backend_pid()`;

test('a table whose fence is ahead: the run fails at once, by name, and nothing is written; an API is repaired', async () => {
  const table = await TableScene.create(system, 'old-table', { rows: 5 });
  const api = await HttpScene.create(system, 'old-api', { rows: 5 });
  const first = await system.startWorker();
  await table.completed();
  await api.completed();
  await first.stop();
  await onServer(alone(), `create database ${name()}_backup template ${name()}`);

  const second = await system.startWorker();
  for (const plan of ['lost', 'lost too']) {
    for (const scene of [table, api]) {
      await scene.exec(`update $table set plan = '${plan}'`);
      await scene.completed();
    }
  }
  await second.stop();
  await onServer(
    alone(),
    `drop database ${name()} with (force)`,
    `alter database ${name()}_backup rename to ${name()}`,
  );

  await system.startWorker();
  for (const scene of [table, api]) await scene.exec(`update $table set plan = 'now'`);
  expect(await table.run()).toMatchObject({
    kind: 'failed',
    message: expect.stringContaining('destination.misconfigured (fenced)'),
  });
  expect(await table.targetRows('select distinct plan from audience')).toEqual([{ plan: 'lost too' }]);
  await api.completed();
  expect(api.audience.state.members).toEqual(await api.wanted());
});
