/** Installing the journal: by whom, twice at once, over another version, and half-way. */

import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type MigrateOptions, migrate, migrations, requireSchema } from '../../src/journal/migrate.ts';
import {
  createEmptyJournal,
  createTestJournal,
  ensureRuntimeRole,
  type TestJournal,
} from '../support/journal.ts';

const FOLDER = fileURLToPath(new URL('../../migrations/', import.meta.url));

let journal: TestJournal;
let folder: string;

beforeEach(async () => {
  journal = await createEmptyJournal();
  await ensureRuntimeRole(journal.admin);
  await journal.admin.query(`grant retl_runtime to ${journal.runtimeRole}`);
  folder = await mkdtemp(join(tmpdir(), 'migrations-'));
  await cp(FOLDER, folder, { recursive: true });
});
afterEach(async () => {
  await journal.close();
  await rm(folder, { recursive: true });
});

const install = (more: Partial<MigrateOptions> = {}) =>
  migrate({ ownerUrl: journal.ownerUrl, runtimeRole: journal.runtimeRole, ...more });

async function applied(): Promise<number> {
  const { rows } = await journal.admin.query('select count(*)::int as n from retl.migration');
  return rows[0].n;
}

describe('installing', () => {
  test('an owner who is no superuser installs it once; the second time there is nothing to do', async () => {
    const names = (await migrations()).map((m) => m.name);
    expect(await install()).toEqual(names);
    expect(await install()).toEqual([]);
    await requireSchema(journal.runtime);
    await requireSchema(journal.owner);
  });

  test('of several installers at once one does the work and the others find it done', async () => {
    const all = await Promise.all([install(), install(), install(), install()]);
    expect(all.filter((names) => names.length > 0)).toHaveLength(1);
    expect(await applied()).toBe((await migrations()).length);
  });

  test('a migration that fails is rolled back whole; the ones before it stay, and it can be tried again', async () => {
    const before = await applied0();
    const broken = join(folder, '0099_broken.sql');
    await writeFile(broken, 'create table retl.half (x int); select 1/0;');
    await expect(install({ folder })).rejects.toMatchObject({
      code: 'journal.migration',
      details: { file: '0099_broken.sql', sqlstate: '22012' },
    });
    expect(await applied()).toBe(before);
    const half = await journal.admin.query("select to_regclass('retl.half') as half");
    expect(half.rows).toEqual([{ half: null }]);
    await writeFile(broken, 'create table retl.half (x int);');
    expect(await install({ folder })).toEqual(['0099_broken.sql']);
  });

  async function applied0(): Promise<number> {
    await install({ folder });
    return applied();
  }

  test('a journal of a newer version, or of other files, is refused, by installers and by workers', async () => {
    await writeFile(join(folder, '0099_newer.sql'), 'create table retl.newer (x int);');
    await install({ folder });
    await expect(install()).rejects.toMatchObject({ code: 'journal.newer' });
    await expect(requireSchema(journal.runtime)).rejects.toMatchObject({ code: 'journal.newer' });
    await journal.admin.query('delete from retl.migration where number = 99');
    const file = join(folder, '0002_runs.sql');
    await writeFile(file, `${await readFile(file, 'utf8')}\n-- changed\n`);
    await expect(install({ folder })).rejects.toMatchObject({ code: 'journal.changed' });
    await journal.admin.query("update retl.migration set sha256 = 'x' where number = 2");
    await expect(requireSchema(journal.runtime)).rejects.toMatchObject({ code: 'journal.changed' });
  });

  test('a worker on a journal that is missing, or half installed, is told to migrate', async () => {
    await expect(requireSchema(journal.runtime)).rejects.toMatchObject({ code: 'journal.missing' });
    await rm(join(folder, '0003_delivery.sql'));
    await install({ folder });
    await expect(requireSchema(journal.runtime)).rejects.toMatchObject({ code: 'journal.missing' });
  });
});

describe('who may', () => {
  test('the runtime role cannot install, before the owner has or after', async () => {
    const asRuntime = () => install({ ownerUrl: journal.runtimeUrl });
    await expect(asRuntime()).rejects.toMatchObject({ code: 'journal.owner' });
    await install();
    await expect(asRuntime()).rejects.toMatchObject({ code: 'journal.owner' });
  });

  test('a schema that an administrator made for the owner is enough', async () => {
    const { rows } = await journal.admin.query('select current_database() as name, current_user as me');
    await journal.admin.query(`alter database ${rows[0].name} owner to ${rows[0].me}`);
    await expect(install()).rejects.toMatchObject({ code: 'journal.owner' });
    await journal.admin.query(`create schema retl authorization ${journal.ownerRole}`);
    expect(await install()).not.toEqual([]);
    expect(await install()).toEqual([]);
  });

  test('a schema of somebody else is not built in, even where one may', async () => {
    await journal.admin.query(`create schema retl authorization ${journal.runtimeRole}`);
    await journal.admin.query(`grant all on schema retl to ${journal.ownerRole}`);
    await expect(install()).rejects.toMatchObject({ code: 'journal.owner' });
  });

  test('an owner who may neither create nor grant the role is told what an administrator must do', async () => {
    await journal.admin.query(`revoke retl_runtime from ${journal.runtimeRole}`);
    const refused = install();
    await expect(refused).rejects.toMatchObject({
      code: 'journal.roles',
      details: { grant: 'retl_runtime', to: journal.runtimeRole },
    });
    await expect(refused).rejects.toThrow(/As an administrator: CREATE ROLE retl_runtime/);
    await journal.admin.query(`grant retl_runtime to ${journal.runtimeRole}`);
    expect(await install()).toEqual([]);
  });

  test('the role missing, an owner without CREATEROLE is told so and nothing is half done', async () => {
    // The role is one for the whole server, and in use: a copy of the file with another name stands in for it.
    const file = join(folder, '0001_journal.sql');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replaceAll('retl_runtime', `retl_runtime_${journal.ownerRole.slice(-12)}`));
    await expect(install({ folder })).rejects.toMatchObject({ code: 'journal.roles' });
    expect(await applied()).toBe(0);
  });

  test('a migrated journal stays the owner’s: no superuser, no right to create anything elsewhere', async () => {
    await install();
    const { rows } = await journal.admin.query(
      'select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls from pg_roles where rolname = any($1)',
      [[journal.ownerRole, journal.runtimeRole]],
    );
    const none = { rolsuper: false, rolcreaterole: false, rolcreatedb: false, rolbypassrls: false };
    expect(rows).toEqual([none, none]);
  });
});

test('the same journal twice on one server: two databases share the role, and nothing else', async () => {
  const other = await createTestJournal();
  try {
    await install();
    await requireSchema(other.runtime);
    await expect(
      other.runtime
        .query('select 1 from retl.run')
        .then(() => journal.runtime.query('select 1 from retl.run')),
    ).resolves.toBeDefined();
  } finally {
    await other.close();
  }
});
