/** Destination `postgres`: what would go wrong later is said before the first write, all at once, with its remedy. */

import { expect, test } from 'vitest';
import { createTarget, remove, upsert } from './destination-postgres-kit.ts';

const ALL = 'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO :role;';
const FIELDS = [{ identity: ['id'], payload: ['name'] }];

/** Codes that preflight gives for a table `t` made by `setup`. */
async function codes(setup: string, options: object = {}, fields = FIELDS): Promise<readonly string[]> {
  const target = await createTarget(`${setup}; ${ALL}`);
  const writer = await target.open({ table: 't', ...options }, { fields, init: false });
  const problems = await writer.preflight();
  for (const each of problems) expect(each.remedy).not.toBe('');
  return problems.map((each) => each.code);
}

test('a sound table has no problems, and preflight writes nothing', async () => {
  const target = await createTarget(
    `CREATE TABLE t (id text PRIMARY KEY, name text, at timestamptz NOT NULL DEFAULT now()); ${ALL}`,
  );
  const writer = await target.open({ table: 't' }, { fields: FIELDS, init: false });
  expect(await writer.preflight()).toEqual([]);
  expect(await target.rows("SELECT 1 FROM pg_class WHERE relname = 'retl_fence'")).toEqual([]);
});

test('late-privilege: every missing right is named at once, and each remedy gives it', async () => {
  const target = await createTarget('CREATE TABLE t (id text PRIMARY KEY, name text, n serial)');
  const writer = await target.open({ table: 't' }, { fields: FIELDS, init: false });
  const problems = await writer.preflight();
  expect(problems.map((each) => each.code)).toEqual([
    'privilege-delete',
    'privilege-select',
    'privilege-insert',
    'privilege-update',
    'privilege-sequence',
  ]);
  for (const each of problems) await target.admin.query(each.remedy.replace('…', 't_n_seq'));
  expect(await writer.preflight()).toEqual([]);
  await writer.init();
  expect((await writer.upsert(upsert([{ id: 'a', name: 'x' }]))).kind).toBe('accepted');
});

test('late-privilege: a schema that the role may not use', async () => {
  const target = await createTarget(`CREATE SCHEMA s; CREATE TABLE s.t (id text PRIMARY KEY, name text);
    GRANT SELECT, INSERT, UPDATE, DELETE ON s.t TO :role;`);
  const writer = await target.open({ table: 's.t' }, { fields: FIELDS, init: false });
  expect((await writer.preflight()).map((each) => each.code)).toEqual(['privilege-schema', 'fence-missing']);
});

test('tables that cannot be mirrored into: missing, views, unlogged, with rules, behind row security', async () => {
  expect(await codes('')).toEqual(['table-missing']);
  expect(await codes('CREATE VIEW t AS SELECT 1 AS id')).toEqual(['table-kind']);
  expect(await codes('CREATE UNLOGGED TABLE t (id text PRIMARY KEY, name text)')).toEqual(['table-unlogged']);
  const table = 'CREATE TABLE t (id text PRIMARY KEY, name text);';
  expect(await codes(`${table} CREATE RULE r AS ON DELETE TO t DO INSTEAD NOTHING`)).toEqual(['table-rules']);
  expect(await codes(`${table} ALTER TABLE t ENABLE ROW LEVEL SECURITY`)).toEqual(['row-security']);
});

test('identity: a plain unique index on exactly its columns is needed', async () => {
  const unique = async (index: string) => codes(`CREATE TABLE t (id text NOT NULL, name text); ${index}`);
  const lacking = ['identity-not-unique'];
  expect(await unique('CREATE UNIQUE INDEX ON t (id)')).toEqual([]);
  expect(await unique('CREATE UNIQUE INDEX ON t (id) INCLUDE (name)')).toEqual([]);
  expect(await unique('CREATE INDEX ON t (id)')).toEqual(lacking);
  expect(await unique('CREATE UNIQUE INDEX ON t (id, name)')).toEqual(lacking);
  expect(await unique("CREATE UNIQUE INDEX ON t (id) WHERE name <> ''")).toEqual(lacking);
  expect(await unique('CREATE UNIQUE INDEX ON t (lower(id))')).toEqual(lacking);
  expect(await unique('CREATE UNIQUE INDEX ON t (id COLLATE "POSIX")')).toEqual(lacking);
  expect(await unique('ALTER TABLE t ADD UNIQUE (id) DEFERRABLE')).toEqual(lacking);
});

const CITEXT = 'CREATE EXTENSION citext; CREATE TABLE t (id citext PRIMARY KEY, name text)';
const COLLATED = (locale: string) =>
  `CREATE COLLATION c (provider = icu, locale = '${locale}', deterministic = false);
   CREATE TABLE t (id text COLLATE c PRIMARY KEY, name text)`;

test('case-only, nfc-nfd: identity columns that fold must be declared, and those declared must fold', async () => {
  const wrong = ['identity-folding'];
  expect(await codes(CITEXT)).toEqual(wrong);
  expect(await codes(CITEXT, { identity_folding: ['case', 'nfc'] })).toEqual(wrong);
  expect(await codes(CITEXT, { identity_folding: ['case'] })).toEqual([]);
  const exact = 'CREATE TABLE t (id text PRIMARY KEY, name text)';
  expect(await codes(exact, { identity_folding: ['case'] })).toEqual(wrong);
  expect(await codes(exact, { identity_folding: ['nfkc'] })).toEqual(wrong);
  expect(await codes(COLLATED('und-u-ks-identic'))).toEqual(wrong);
  expect(await codes(COLLATED('und-u-ks-identic'), { identity_folding: ['nfc'] })).toEqual([]);
});

test('case-only: collations that ignore more than case and Unicode form cannot hold identities', async () => {
  for (const locale of ['und-u-ks-level1', 'und-u-ks-level2', 'und']) {
    const found = await codes(COLLATED(locale), { identity_folding: ['case', 'nfc', 'nfkc'] });
    expect(found).toEqual(['identity-folding']);
  }
});

test('case-only: where it is declared, a new spelling replaces the old one and goes with it', async () => {
  const target = await createTarget(`${CITEXT}; ${ALL}`);
  const writer = await target.open({ table: 't', identity_folding: ['case'] }, { fields: FIELDS });
  await writer.upsert(upsert([{ id: 'A@x', name: 'old' }]));
  expect((await writer.upsert(upsert([{ id: 'a@x', name: 'new' }]))).kind).toBe('accepted');
  expect(await target.rows('SELECT id, name FROM t')).toEqual([{ id: 'a@x', name: 'new' }]);
  expect((await writer.remove(remove([{ id: 'A@X' }]))).kind).toBe('accepted');
  expect(await target.rows('SELECT id FROM t')).toEqual([]);
});

test('columns: missing, generated, required and unsuitable ones are all named', async () => {
  const found = await codes(
    `CREATE TABLE t (id float8 PRIMARY KEY, name text GENERATED ALWAYS AS ('x') STORED, n int GENERATED ALWAYS AS IDENTITY,
      parts bytea[], needed text NOT NULL, fine text NOT NULL DEFAULT '')`,
    {},
    [{ identity: ['id'], payload: ['name', 'n', 'parts', 'absent'] }],
  );
  expect(found).toEqual([
    'column-generated',
    'column-generated',
    'column-type',
    'unknown-column',
    'column-required',
    'identity-type',
  ]);
});

test('a removal that would reach into other tables is refused unless it is meant', async () => {
  const tables = `CREATE TABLE t (id text PRIMARY KEY, name text);
    CREATE TABLE orders (t_id text REFERENCES t ON DELETE CASCADE)`;
  expect(await codes(tables)).toEqual(['delete-cascades']);
  expect(await codes(tables, { allow_cascade: true })).toEqual([]);
  expect(await codes(tables.replace('CASCADE', 'SET NULL'))).toEqual(['delete-cascades']);
  expect(await codes(tables.replace('CASCADE', 'RESTRICT'))).toEqual([]);
});

test('a module mapping names its identity in the options; rules must agree on theirs', async () => {
  const target = await createTarget(`CREATE TABLE t (id text PRIMARY KEY, name text UNIQUE); ${ALL}`);
  const unnamed = await target.open({ table: 't' }, { init: false });
  expect(await unnamed.preflight()).toMatchObject([{ code: 'identity-unknown' }]);
  const named = await target.open({ table: 't', identity: ['id'] }, { init: false });
  expect(await named.preflight()).toEqual([]);
  const rules = [...FIELDS, { identity: ['name'], payload: [] }];
  const mixed = await target.open({ table: 't' }, { init: false, fields: rules });
  expect(await mixed.preflight()).toMatchObject([{ code: 'column-required' }, { code: 'identity-differs' }]);
});

test('a server that is read-only, unreachable, or refuses the role is a problem in words', async () => {
  const target = await createTarget(`CREATE TABLE t (id text PRIMARY KEY, name text); ${ALL}
    ALTER ROLE :role SET default_transaction_read_only = on`);
  const open = (more: object) => target.open({ table: 't' }, { fields: FIELDS, init: false, ...more });
  expect(await (await open({})).preflight()).toMatchObject([{ code: 'read-only' }]);
  expect(await (await open({ port: 1 })).preflight()).toMatchObject([{ code: 'connection-refused' }]);
  const nowhere = await open({ connection: { database: 'no_such_database' } });
  expect(await nowhere.preflight()).toMatchObject([{ code: 'sqlstate-3D000' }]);
  const nobody = await open({ connection: { user: 'no_such_role' } });
  expect(await nobody.preflight()).toMatchObject([{ code: expect.stringMatching(/^sqlstate-28/) }]);
});

test('new-empty: a table is empty or not for all to see; where policies hide rows, it cannot be said', async () => {
  const target = await createTarget(`CREATE TABLE t (id text PRIMARY KEY, name text); ${ALL}`);
  const writer = await target.open({ table: 't' }, { fields: FIELDS });
  expect(await writer.checkEmpty()).toEqual({ kind: 'empty' });
  await writer.upsert(upsert([{ id: 'a', name: null }]));
  expect(await writer.checkEmpty()).toEqual({ kind: 'not-empty' });
  await target.admin.query('ALTER TABLE t ENABLE ROW LEVEL SECURITY');
  expect(await writer.checkEmpty()).toEqual({ kind: 'failed', code: 'sqlstate-42501' });
});
