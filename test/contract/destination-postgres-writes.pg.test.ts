/** Destination `postgres`: what is written, what is left alone, and what a refused row does to its neighbours. */

import { expect, test } from 'vitest';
import { createTarget, remove, upsert } from './destination-postgres-kit.ts';

const PEOPLE = `CREATE TABLE people (id text PRIMARY KEY, name text, score int CHECK (score < 100), note text DEFAULT 'kept');
  GRANT SELECT, INSERT, UPDATE, DELETE ON people TO :role;`;

test('upserts insert, then change; columns that are not mapped keep their value', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  expect(
    await writer.upsert(
      upsert([
        { id: 'a', name: 'x' },
        { id: 'b', name: null },
      ]),
    ),
  ).toEqual({
    kind: 'accepted',
    receipt: { rows: 2, rejected: 0 },
  });
  await target.admin.query("UPDATE people SET note = 'mine', score = 7 WHERE id = 'a'");
  await writer.upsert(upsert([{ id: 'a', name: 'y' }]));
  expect(await target.rows('SELECT * FROM people ORDER BY id')).toEqual([
    { id: 'a', name: 'y', score: 7, note: 'mine' },
    { id: 'b', name: null, score: null, note: 'kept' },
  ]);
});

test('null-clears: a null clears, an empty text stays empty, an absent field leaves its column alone, in one request', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  await writer.upsert(upsert(['a', 'b', 'c'].map((id) => ({ id, name: 'x', note: 'n' }))));
  const mixed = upsert([
    { id: 'a', name: null },
    { id: 'b', name: '' },
    { id: 'c', note: 'changed' },
  ]);
  expect((await writer.upsert(mixed)).kind).toBe('accepted');
  expect(await target.rows('SELECT id, name, note FROM people ORDER BY id')).toEqual([
    { id: 'a', name: null, note: 'n' },
    { id: 'b', name: '', note: 'n' },
    { id: 'c', name: 'x', note: 'changed' },
  ]);
});

test('a member that is its identity alone is accepted, and accepted again', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  const request = upsert([{ id: 'a' }, { id: 'b' }]);
  for (const _ of [1, 2]) {
    expect(await writer.upsert(request)).toMatchObject({ kind: 'accepted', receipt: { rows: 2 } });
  }
  expect(await target.rows('SELECT id FROM people')).toHaveLength(2);
});

test('co-writer: removals take our rows only, and one that is gone already is accepted', async () => {
  const target = await createTarget(
    `${PEOPLE} INSERT INTO people (id) SELECT 'foreign-' || n FROM generate_series(1, 5) n;`,
  );
  const writer = await target.open({ table: 'people' });
  await writer.upsert(upsert([{ id: 'a' }, { id: 'b' }]));
  const request = remove([{ id: 'a' }, { id: 'never-there' }]);
  for (const _ of [1, 2]) expect((await writer.remove(request)).kind).toBe('accepted');
  const left = await target.rows("SELECT id FROM people WHERE id NOT LIKE 'foreign-%'");
  expect(left).toEqual([{ id: 'b' }]);
  expect(await target.rows('SELECT id FROM people')).toHaveLength(6);
});

test('partial-as-all, whole-batch-reject: one row of five breaks a CHECK, four are accepted, one is named', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  const outcome = await writer.upsert(upsert([1, 500, 3, 4, 5].map((score) => ({ id: `p${score}`, score }))));
  if (outcome.kind !== 'settled') throw new Error(outcome.kind);
  expect(outcome.outcomes.map((each) => each.kind)).toEqual([
    'accepted',
    'rejected',
    'accepted',
    'accepted',
    'accepted',
  ]);
  expect(outcome.outcomes[1]).toMatchObject({ code: 'sqlstate-23514' });
  expect(outcome.receipt).toEqual({ rows: 4, rejected: 1 });
  expect(await target.rows('SELECT id FROM people ORDER BY id')).toHaveLength(4);
});

test('a constraint that is deferred to COMMIT still names its row', async () => {
  const target = await createTarget(`${PEOPLE}
    CREATE TABLE teams (id text PRIMARY KEY); INSERT INTO teams VALUES ('red');
    ALTER TABLE people ADD FOREIGN KEY (note) REFERENCES teams DEFERRABLE INITIALLY DEFERRED;`);
  const writer = await target.open({ table: 'people' });
  const outcome = await writer.upsert(
    upsert(['red', 'blue', 'red'].map((note, i) => ({ id: `${i}`, note }))),
  );
  expect(outcome).toMatchObject({
    kind: 'settled',
    outcomes: [{ kind: 'accepted' }, { kind: 'rejected', code: 'sqlstate-23503' }, { kind: 'accepted' }],
  });
});

test('cannot-remove: a referenced row is rejected and stays, its neighbour goes', async () => {
  const target = await createTarget(`${PEOPLE}
    CREATE TABLE orders (person text REFERENCES people);`);
  const writer = await target.open({ table: 'people' });
  await writer.upsert(upsert([{ id: 'a' }, { id: 'b' }]));
  await target.admin.query("INSERT INTO orders VALUES ('a')");
  expect(await writer.remove(remove([{ id: 'a' }, { id: 'b' }]))).toMatchObject({
    kind: 'settled',
    outcomes: [{ kind: 'rejected', code: 'sqlstate-23503' }, { kind: 'accepted' }],
  });
  expect(await target.rows('SELECT id FROM people')).toEqual([{ id: 'a' }]);
});

test('silent-noop: a row that a trigger discards is rejected, for upserts and for removals', async () => {
  const target = await createTarget(`${PEOPLE}
    CREATE FUNCTION discard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF coalesce(NEW.id, OLD.id) LIKE 'x%' THEN RETURN NULL; END IF;
      RETURN coalesce(NEW, OLD); END $$;`);
  const writer = await target.open({ table: 'people' });
  await writer.upsert(upsert([{ id: 'x1' }, { id: 'a' }]));
  await target.admin.query(
    'CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON people FOR EACH ROW EXECUTE FUNCTION discard()',
  );
  const expected = {
    kind: 'settled',
    outcomes: [{ kind: 'rejected', code: 'silent-noop' }, { kind: 'accepted' }],
  };
  expect(await writer.upsert(upsert([{ id: 'x2' }, { id: 'b' }]))).toMatchObject(expected);
  expect(await writer.remove(remove([{ id: 'x1' }, { id: 'a' }]))).toMatchObject(expected);
  expect(await target.rows('SELECT id FROM people ORDER BY id')).toEqual([{ id: 'b' }, { id: 'x1' }]);
});

test('silent-noop: a row that a trigger stores under another identity is rejected', async () => {
  const target = await createTarget(`${PEOPLE}
    CREATE FUNCTION shout() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := upper(NEW.id); RETURN NEW; END $$;
    CREATE TRIGGER t BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION shout();`);
  const writer = await target.open({ table: 'people' });
  expect(await writer.upsert(upsert([{ id: 'a' }, { id: 'B' }]))).toMatchObject({
    kind: 'settled',
    outcomes: [{ kind: 'rejected', code: 'silent-noop' }, { kind: 'accepted' }],
  });
  expect(await target.rows('SELECT id FROM people')).toEqual([{ id: 'B' }]);
});

test('key-concat, bigint/numeric: identities that the column would make one are rejected, upsert and removal alike', async () => {
  const target = await createTarget(`
    CREATE TABLE n (id numeric PRIMARY KEY, code varchar(3)); CREATE TABLE i (id int8 PRIMARY KEY); CREATE TABLE v (id varchar(3) PRIMARY KEY);
    GRANT SELECT, INSERT, UPDATE, DELETE ON n, i, v TO :role;`);
  const codes = async (table: string, ids: readonly string[]): Promise<readonly string[]> => {
    const writer = await target.open({ table });
    const outcome = await writer.upsert(upsert(ids.map((id) => ({ id }))));
    if (outcome.kind === 'accepted') return ids.map(() => 'accepted');
    if (outcome.kind !== 'settled') return [outcome.kind];
    return outcome.outcomes.map((each) => (each.kind === 'rejected' ? each.code : each.kind));
  };
  const inexact = 'identity-not-exact';
  expect(await codes('n', ['0.1', '0.10', '1e2'])).toEqual(['accepted', inexact, inexact]);
  expect(await codes('i', ['9007199254740992', '9007199254740993', '01', 'x'])).toEqual([
    'accepted',
    'accepted',
    inexact,
    'sqlstate-22P02',
  ]);
  expect(await codes('v', ['abc', 'abcd', 'ab '])).toEqual(['accepted', inexact, 'accepted']);
  const writer = await target.open({ table: 'i' });
  expect(await writer.remove(remove([{ id: '09007199254740992' }]))).toMatchObject({
    kind: 'settled',
    outcomes: [{ code: inexact }],
  });
  expect(await target.rows('SELECT id FROM i')).toHaveLength(2);
});

test('null-key, transformed-key: a null identity, or a payload with another identity, never reaches the table', async () => {
  const target = await createTarget(`CREATE TABLE u (id text UNIQUE, name text);
    GRANT SELECT, INSERT, UPDATE, DELETE ON u TO :role;`);
  const writer = await target.open({ table: 'u' });
  const sound = upsert([{ id: 'a' }, { id: null }, { id: 'c' }]);
  const [a, b, c] = sound.operations;
  if (a === undefined || b === undefined || c === undefined) throw new Error('three operations');
  const request = { ...sound, operations: [a, b, { ...c, payload: '{"id":"C"}' }] };
  expect(await writer.upsert(request)).toMatchObject({
    kind: 'settled',
    outcomes: [{ kind: 'accepted' }, { code: 'identity-null' }, { code: 'identity-mismatch' }],
  });
  expect(await target.rows('SELECT id FROM u')).toEqual([{ id: 'a' }]);
});

test('key-concat: composite identities are compared part by part', async () => {
  const target = await createTarget(`CREATE TABLE pairs (a text, b text, PRIMARY KEY (b, a));
    GRANT SELECT, INSERT, UPDATE, DELETE ON pairs TO :role;`);
  const writer = await target.open({ table: 'pairs' });
  const members = [
    { a: 'a', b: 'bc' },
    { a: 'ab', b: 'c' },
    { a: 'x|y', b: '' },
    { a: 'x', b: '|y' },
    { a: 'NULL', b: '\u001f' },
  ];
  expect((await writer.upsert(upsert(members, ['a', 'b']))).kind).toBe('accepted');
  expect((await writer.remove(remove(members.slice(0, 1), ['a', 'b']))).kind).toBe('accepted');
  expect(await target.rows('SELECT a FROM pairs')).toHaveLength(4);
});

test('10,000 rows go in and out in one request each, quickly', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  const members = Array.from({ length: 10_000 }, (_, n) => ({
    id: `member-${n}`,
    name: `Name ${n}`,
    score: n % 90,
  }));
  const started = performance.now();
  expect(await writer.upsert(upsert(members))).toMatchObject({ kind: 'accepted', receipt: { rows: 10_000 } });
  expect(await writer.upsert(upsert(members))).toMatchObject({ kind: 'accepted', receipt: { rows: 10_000 } });
  expect(await writer.remove(remove(members))).toMatchObject({ kind: 'accepted', receipt: { rows: 10_000 } });
  expect(performance.now() - started).toBeLessThan(15_000); // a plan of 10,000 times 10,000 comparisons takes longer
  expect(await target.rows('SELECT id FROM people')).toEqual([]);
});

test('bad rows among thousands are found; far too many refuse the request whole, with nothing applied', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people' });
  const some = Array.from({ length: 2_000 }, (_, n) => ({ id: `${n}`, score: n % 500 === 3 ? 100 : 1 }));
  expect(await writer.upsert(upsert(some))).toMatchObject({ receipt: { rows: 1_996, rejected: 4 } });
  const most = Array.from({ length: 9_000 }, (_, n) => ({ id: `m${n}`, score: 100 }));
  expect(await writer.upsert(upsert(most))).toMatchObject({
    kind: 'refused',
    code: 'sqlstate-23514',
    divisible: true,
  });
  expect(await target.rows('SELECT id FROM people')).toHaveLength(1_996);
});

test('members of a module: their identity is read from the request, and unfit fields are refused whole', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open({ table: 'people', columns: { ['n'.repeat(64)]: 'name' } });
  expect((await writer.upsert(upsert([{ id: 'a', name: 'x' }]))).kind).toBe('accepted');
  const misconfigured = (code: string) => ({ kind: 'misconfigured', code });
  // The server would cut the name to 63 bytes and read NULL.
  expect(await writer.upsert(upsert([{ id: 'a', ['n'.repeat(64)]: 'y' }]))).toMatchObject(
    misconfigured('field-name'),
  );
  const wide = remove([{ id: 'a', name: 'x' }], ['id', 'name']);
  const [operation] = wide.operations;
  if (operation === undefined) throw new Error('one operation');
  const request = { ...wide, operations: [{ ...operation, identity: '{"id":"a"}' }] };
  expect(await writer.remove(request)).toMatchObject(misconfigured('remove-fields'));
  expect(await target.rows('SELECT id, name FROM people')).toEqual([{ id: 'a', name: 'x' }]);
});

test('rows of inheritance children are not the table’s own', async () => {
  const target = await createTarget(
    `${PEOPLE} CREATE TABLE staff () INHERITS (people); INSERT INTO staff (id) VALUES ('a');`,
  );
  const writer = await target.open({ table: 'people' });
  expect((await writer.upsert(upsert([{ id: 'a' }]))).kind).toBe('accepted');
  expect((await writer.remove(remove([{ id: 'a' }]))).kind).toBe('accepted');
  expect(await target.rows('SELECT id FROM people')).toEqual([{ id: 'a' }]);
  expect(await target.rows('SELECT id FROM ONLY people')).toEqual([]);
});
