/**
 * Rule "index = log": a fresh build, in which changes wait beside the rows until it has keys, comes to hold the rows that one
 * with keys holds, page by page, wherever pages end and however often what waits is settled.
 */

import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { logPosition, mirrorId, runId, sequence, sha256FromHex, targetId } from '../../src/domain/ids.ts';
import { NamedEntry } from '../../src/indexing/indexer.ts';
import { finishTable, type RowTable } from '../../src/indexing/postgres/kind.ts';
import { isMuch } from '../../src/indexing/postgres/late-changes.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import { EffectColumns } from '../../src/journal/log-effects.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

const MEMBERS = 6;
const TARGETS = 2;
const HASH = sha256FromHex('0'.repeat(64));

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** Of each entry, what it does to which members; `page` and `settle` end a page, or have what waits settled, after it. */
const histories = fc.array(
  fc.record({
    target: fc.integer({ min: 1, max: TARGETS }),
    touched: fc.uniqueArray(fc.integer({ min: 0, max: MEMBERS - 1 }), { minLength: 1 }),
    removes: fc.boolean(),
    page: fc.boolean(),
    settle: fc.boolean(),
  }),
  { minLength: 1, maxLength: 24 },
);
type Steps = typeof histories extends fc.Arbitrary<infer T> ? T : never;

function member(n: number): Buffer {
  return Buffer.alloc(32, n + 1);
}

/** The log says of each effect what it did: that follows from what is held by then. */
function logOf(
  steps: Steps,
): readonly { readonly entry: NamedEntry; readonly page: boolean; readonly settle: boolean }[] {
  const held = new Map<string, boolean>();
  return steps.map(({ target, touched, removes, page, settle }, n) => {
    const position = n + 1;
    const some = touched.filter((m) => !removes || held.get(`${target}:${m}`) === true);
    const changes = some.map((m) => {
      const key = `${target}:${m}`;
      const before = held.get(key) === true;
      held.set(key, !removes);
      return removes ? 'r' : before ? (position % 3 === 0 ? 'k' : 'c') : 'a';
    });
    const columns = new EffectColumns(
      Buffer.concat(some.map(member)),
      Buffer.concat(some.map(() => Buffer.alloc(32, removes ? 0 : position))),
      changes.join(''),
      some.map((m) => `{"email":"Person ${m}@example.com"${m % 2 === 0 ? ',"name":"N"' : ''}}`),
      null,
    );
    return {
      entry: new NamedEntry(`mirror-${target}`, entryAt(position, target, changes.length), columns),
      page,
      settle,
    };
  });
}

const entryAt = (position: number, target: number, effects: number) => ({
  position: logPosition(BigInt(position)),
  kind: 'additions' as const,
  mirror: mirrorId(BigInt(target)),
  target: targetId(BigInt(target)),
  run: runId(BigInt(position)),
  batch: HASH,
  first: sequence(1n),
  last: sequence(BigInt(Math.max(1, effects))),
  effects,
  effectsHash: HASH,
  previousHash: HASH,
  entryHash: HASH,
  recordedAt: 1_700_000_000_000_000n + BigInt(position),
});

async function replayed(name: string, keyed: boolean, log: ReturnType<typeof logOf>): Promise<bigint> {
  await client.query(
    `drop table if exists ${name}, ${name}_late; create table ${name} (${membershipSearch.columns})`,
  );
  let table: RowTable = { name, keyed, late: 0n, rows: 0n };
  if (keyed) await inOne(() => finishTable(client, membershipSearch, table));
  let entries: NamedEntry[] = [];
  for (const { entry, page, settle } of log) {
    entries.push(entry);
    if (!page) continue;
    table = await taken(table, entries);
    entries = [];
    if (!settle) continue;
    await inOne(() => membershipSearch.settle(client, table));
    table = { ...table, late: 0n };
  }
  if (entries.length > 0) table = await taken(table, entries);
  if (!keyed) await inOne(() => finishTable(client, membershipSearch, table));
  return table.rows;
}

async function taken(table: RowTable, entries: readonly NamedEntry[]): Promise<RowTable> {
  const { grown, late } = await inOne(() =>
    membershipSearch.take(client, table, { kind: 'entries', entries }),
  );
  return { ...table, late, rows: table.rows + grown };
}

async function inOne<T>(work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  const made = await work();
  await client.query('commit');
  return made;
}

test('rows, and how many there are, are those of a build with keys', async () => {
  await fc.assert(
    fc.asyncProperty(histories, async (steps) => {
      await client.query('rollback');
      const log = logOf(steps);
      const [fresh, keyed] = [await replayed('fresh', false, log), await replayed('keyed', true, log)];
      const { rows } = await client.query(
        `select (select count(*) from (select * from fresh except all select * from keyed) a) as more,
           (select count(*) from (select * from keyed except all select * from fresh) b) as less,
           (select count(*) from keyed) as held`,
      );
      expect(rows).toEqual([{ more: '0', less: '0', held: `${keyed}` }]);
      expect(fresh).toBe(keyed);
      const { rows: left } = await client.query("select to_regclass('fresh_late') as late");
      expect(left).toEqual([{ late: null }]);
    }),
    { numRuns: 60 },
  );
});

test('what waits is settled before it is much more than the rows, and not while it is little', () => {
  const much = (late: bigint, rows: bigint) => isMuch({ name: 't', keyed: false, late, rows });
  expect(much(100_000n, 0n)).toBe(false);
  expect(much(100_001n, 0n)).toBe(true);
  expect(much(400_000n, 1_000_000n)).toBe(false);
  expect(much(500_001n, 1_000_000n)).toBe(true);
});
