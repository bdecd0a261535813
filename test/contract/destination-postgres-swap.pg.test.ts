/** Native replacement of a table: what readers see, what stays, and what cancel, abort and a failed finish leave behind. */

import { expect, test } from 'vitest';
import type { FinishRequest, Writer } from '../../src/destinations/port.ts';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { createTarget, remove, startProxy, type Target, upsert } from './destination-postgres-kit.ts';

const FIELDS = [{ identity: ['id'], payload: ['email'] }];
const PEOPLE = `CREATE TABLE people (
    id text PRIMARY KEY, email text CHECK (email <> 'bad'), visits int NOT NULL DEFAULT 7, seen serial,
    shout text GENERATED ALWAYS AS (upper(email)) STORED);
  GRANT SELECT, INSERT, UPDATE, DELETE ON people TO :role; GRANT USAGE ON SEQUENCE people_seen_seq TO :role;`;
const SWAP = { table: 'people', swap: 'replace' };

const SIDE_TABLES =
  "SELECT relname AS name FROM pg_class WHERE relname LIKE 'retl\\_side%' AND relkind = 'r'";

function finish(members: number, digits = '1'): FinishRequest {
  const batchId = sha256FromHex(digits.padEnd(64, '0'));
  return { batchId, idempotencyKey: batchId, generation: '1', members, digest: 'sha256:0' };
}

const person = (id: string, email: string) => ({ id, email });

async function load(writer: Writer, people: readonly { id: string; email: string }[]): Promise<void> {
  const outcome = await writer.upsert(upsert(people));
  if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome));
}

/** A whole run. */
async function replaceWith(
  target: Target,
  options: object,
  run: string,
  people: readonly { id: string; email: string }[],
): Promise<void> {
  const writer = await target.open(options, { run, epoch: Number(run), fields: FIELDS });
  await load(writer, people);
  const done = await writer.finish(finish(people.length, run));
  if (done.kind !== 'accepted') throw new Error(JSON.stringify(done));
}

const held = (target: Target) => target.rows('SELECT id, email FROM people ORDER BY id');

test('a reader sees the former set or the new one, in one snapshot, and nothing before the finish', async () => {
  const target = await createTarget(PEOPLE);
  const [old, next] = [
    [person('a', '1'), person('b', '1')],
    [person('b', '2'), person('c', '2')],
  ];
  await replaceWith(target, SWAP, '1', old);
  const writer = await target.open(SWAP, { run: '2', epoch: 2, fields: FIELDS });
  await load(writer, next);
  expect(await held(target)).toEqual(old);
  await target.admin.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  expect(await held(target)).toEqual(old);
  expect((await writer.finish(finish(2, '2'))).kind).toBe('accepted');
  expect(await held(target)).toEqual(old);
  await target.admin.query('COMMIT');
  expect(await held(target)).toEqual(next);
});

test('replace: the table keeps its views, grants, keys and triggers, and columns that are not mapped', async () => {
  const target = await createTarget(`${PEOPLE}
    CREATE TABLE orders (person text REFERENCES people);
    CREATE VIEW mails AS SELECT email FROM people;
    CREATE TABLE touched (id text, op text);
    CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
      $$ BEGIN INSERT INTO touched VALUES (coalesce(NEW.id, OLD.id), TG_OP); RETURN NULL; END $$;
    CREATE TRIGGER touch AFTER INSERT OR UPDATE OR DELETE ON people FOR EACH ROW EXECUTE FUNCTION touch();
    INSERT INTO people (id, email, visits) VALUES ('stays', 'same', 40), ('changes', 'old', 41), ('goes', 'x', 42);
    INSERT INTO orders VALUES ('stays'); TRUNCATE touched;`);
  await replaceWith(target, SWAP, '1', [
    person('stays', 'same'),
    person('changes', 'new'),
    person('comes', 'y'),
  ]);
  expect(await target.rows('SELECT id, email, visits, shout FROM people ORDER BY id')).toEqual([
    { id: 'changes', email: 'new', visits: 41, shout: 'NEW' },
    { id: 'comes', email: 'y', visits: 7, shout: 'Y' },
    { id: 'stays', email: 'same', visits: 40, shout: 'SAME' },
  ]);
  // An unchanged member is uploaded, and its row is not touched.
  expect(await target.rows('SELECT * FROM touched ORDER BY id')).toEqual([
    { id: 'changes', op: 'UPDATE' },
    { id: 'comes', op: 'INSERT' },
    { id: 'goes', op: 'DELETE' },
  ]);
  expect(await target.rows('SELECT * FROM mails')).toHaveLength(3);
  expect(await target.rows(SIDE_TABLES)).toEqual([]);
});

test('a row that the target would refuse is rejected as it is uploaded, and its neighbours are kept', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open(SWAP, { fields: FIELDS });
  const outcome = await writer.upsert(upsert([person('a', 'fine'), person('b', 'bad')]));
  expect(outcome).toMatchObject({
    kind: 'settled',
    outcomes: [{ kind: 'accepted' }, { kind: 'rejected', code: 'sqlstate-23514' }],
  });
});

test('what a run leaves behind: a cancelled one its side table, an aborted one nothing', async () => {
  const target = await createTarget(PEOPLE);
  const before = [person('a', '1')];
  await replaceWith(target, SWAP, '1', before);
  const cancelled = await target.open(SWAP, { run: '2', epoch: 2, fields: FIELDS });
  await load(cancelled, [person('b', '2')]);
  await cancelled.close();
  expect(await held(target)).toEqual(before);
  // Durable: what has been accepted must outlive a crash of the server.
  expect(
    await target.rows(`SELECT relpersistence FROM (${SIDE_TABLES}) AS s JOIN pg_class ON relname = name`),
  ).toEqual([{ relpersistence: 'p' }]);
  // A later attempt of that run goes on with it.
  const resumed = await target.open(SWAP, { run: '2', epoch: 3, init: false, fields: FIELDS });
  expect((await resumed.attach({})).kind).toBe('accepted');
  await load(resumed, [person('c', '2')]);
  expect(await target.rows(SIDE_TABLES)).toHaveLength(1);
  const aborting = await target.open(SWAP, { run: '2', epoch: 4, init: false, fields: FIELDS });
  expect((await aborting.abort()).kind).toBe('accepted');
  expect((await aborting.abort()).kind).toBe('accepted');
  expect(await target.rows(SIDE_TABLES)).toEqual([]);
  expect(await held(target)).toEqual(before);
});

test('rule 10: after an abort no request of an older attempt brings the run back', async () => {
  const target = await createTarget(PEOPLE);
  const old = await target.open(SWAP, { run: '1', epoch: 1, fields: FIELDS });
  await load(old, [person('a', '1')]);
  const aborting = await target.open(SWAP, { run: '1', epoch: 2, init: false, fields: FIELDS });
  await aborting.abort();
  for (const late of [await old.upsert(upsert([person('b', '1')])), await old.finish(finish(1))]) {
    expect(late).toMatchObject({ kind: 'misconfigured', code: 'fenced' });
  }
  expect(await held(target)).toEqual([]);
});

test('a new run clears the side tables of older ones, which were given up', async () => {
  const target = await createTarget(PEOPLE);
  for (const run of ['1', '2', '3']) {
    const writer = await target.open(SWAP, { run, epoch: Number(run), fields: FIELDS });
    await load(writer, [person(run, run)]);
  }
  const left = await target.rows(SIDE_TABLES);
  expect(left).toEqual([{ name: expect.stringMatching(/_3$/) }]);
});

test('mirrors of one schema may begin at once, the first time', async () => {
  const target = await createTarget(`CREATE TABLE a (id text PRIMARY KEY, email text);
    CREATE TABLE b (LIKE a INCLUDING ALL); CREATE TABLE c (LIKE a INCLUDING ALL);
    GRANT SELECT, INSERT, UPDATE, DELETE ON a, b, c TO :role;`);
  const writers = await Promise.all(
    ['a', 'b', 'c'].map((table) =>
      target.open({ table, swap: 'replace' }, { owner: `log-1/${table}`, init: false, fields: FIELDS }),
    ),
  );
  const kinds = (await Promise.all(writers.map((writer) => writer.init()))).map(({ kind }) => kind);
  expect(kinds).toEqual(['accepted', 'accepted', 'accepted']);
});

test('a finish that cannot get its lock changes nothing and is tried again', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open(SWAP, { fields: FIELDS, connection: { lock_timeout_ms: 100 } });
  await load(writer, [person('a', '1')]);
  await target.admin.query("BEGIN; INSERT INTO people (id) VALUES ('other')");
  expect(await writer.finish(finish(1))).toMatchObject({ kind: 'not-applied', code: 'sqlstate-55P03' });
  await target.admin.query('ROLLBACK');
  expect((await writer.finish(finish(1))).kind).toBe('accepted');
  expect(await held(target)).toEqual([person('a', '1')]);
});

test('a finish whose COMMIT is lost on its way is unknown, and is made once by asking', async () => {
  const target = await createTarget(PEOPLE);
  const proxy = await startProxy(target.url);
  const writer = await target.open(SWAP, { fields: FIELDS, port: proxy.port });
  await load(writer, [person('a', '1')]);
  for (const cut of ['before-commit', 'after-commit'] as const) {
    proxy.cut = cut;
    expect((await writer.finish(finish(1))).kind).toBe('unknown');
    expect(await held(target)).toEqual(cut === 'before-commit' ? [] : [person('a', '1')]);
  }
  // Another hand has changed the table since: the marker says that there is nothing to do again.
  await target.admin.query("UPDATE people SET email = 'by hand'");
  expect((await writer.reconcileFinish(finish(1), null)).kind).toBe('accepted');
  expect(await held(target)).toEqual([person('a', 'by hand')]);
});

test('a trigger that discards rows makes the finish refused, and the former set stays', async () => {
  const target = await createTarget(`${PEOPLE}
    CREATE FUNCTION no_b() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RETURN CASE NEW.id WHEN 'b' THEN NULL ELSE NEW END; END $$;
    CREATE TRIGGER no_b BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION no_b();`);
  await replaceWith(target, SWAP, '1', [person('a', '1')]);
  const writer = await target.open(SWAP, { run: '2', epoch: 2, fields: FIELDS });
  await load(writer, [person('b', '2'), person('c', '2')]);
  expect(await writer.finish(finish(2, '2'))).toMatchObject({ kind: 'refused', code: 'silent-noop' });
  expect(await held(target)).toEqual([person('a', '1')]);
});

test('rule 1: removals are refused, also when asked about', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open(SWAP, { fields: FIELDS });
  const request = remove([person('a', '1')]);
  expect(await writer.remove(request)).toMatchObject({ kind: 'refused', code: 'removals-refused' });
  expect(await writer.reconcileBatch(request, null)).toMatchObject({ kind: 'refused' });
});

test('a side table that somebody has dropped is noticed by the finish', async () => {
  const target = await createTarget(PEOPLE);
  const writer = await target.open(SWAP, { fields: FIELDS });
  await load(writer, [person('a', '1')]);
  const [side] = await target.rows(SIDE_TABLES);
  await target.admin.query(`DROP TABLE ${String(side?.name)}`);
  expect(await writer.finish(finish(1))).toMatchObject({ kind: 'refused', code: 'side-table-missing' });
});

test('an identity that folds is replaced by its newest spelling', async () => {
  const target =
    await createTarget(`CREATE EXTENSION citext; CREATE TABLE people (id citext PRIMARY KEY, email text);
    GRANT SELECT, INSERT, UPDATE, DELETE ON people TO :role;`);
  const options = { ...SWAP, identity_folding: ['case'] };
  await replaceWith(target, options, '1', [person('Ann', '1')]);
  await replaceWith(target, options, '2', [person('ANN', '1')]);
  expect(await held(target)).toEqual([person('ANN', '1')]);
});
