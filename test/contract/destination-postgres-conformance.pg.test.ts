/** Destination `postgres` against the conformance kit. */

import { expect, test } from 'vitest';
import { conformanceChecks } from '../../src/destinations/conformance.ts';
import type { ConformanceHarness } from '../../src/destinations/conformance-harness.ts';
import { postgresDestination } from '../../src/destinations/postgres/index.ts';
import { createTarget, startProxy } from './destination-postgres-kit.ts';

type Connection = ReturnType<typeof postgresDestination.connectionSchema.parse>;
type Options = ReturnType<typeof postgresDestination.optionsSchema.parse>;

/** The kit may write without a session; this destination takes no write from who does not hold its fence. */
const adapter: typeof postgresDestination = {
  ...postgresDestination,
  open: async (connection, options, context) => {
    const writer = await postgresDestination.open(connection, options, context);
    await writer.init();
    return writer;
  },
};

const PEOPLE = `CREATE TABLE people (id text, region int, note jsonb, PRIMARY KEY (region, id));
  GRANT SELECT, INSERT, UPDATE, DELETE ON people TO :role;`;

async function createHarness(): Promise<ConformanceHarness<Connection, Options>> {
  const target = await createTarget(PEOPLE);
  const proxy = await startProxy(target.url);
  const options = (table: unknown): Options => postgresDestination.optionsSchema.parse({ table });
  const connection = target.connection(proxy.port);
  const at = (place: Connection, table: unknown) => ({ connection: place, options: options(table) });
  const identity = (n: number) => ({ id: `me'm"ber 😀 ${n}`, region: n % 3 });
  return {
    adapter,
    connection,
    options: options('people'),
    sameTargets: [
      at(connection, 'public.people'),
      at(connection, { schema: 'public', name: 'people' }),
      at({ ...connection, user: 'another', password: 'another' }, '"people"'),
    ],
    otherTargets: [
      at(connection, '"People"'),
      at(connection, '"public.people"'),
      at(connection, 'sales.people'),
      at({ ...connection, database: 'other' }, 'people'),
      at({ ...connection, port: 5433 }, 'people'),
      at({ ...connection, host: 'other' }, 'people'),
    ],
    unreachable: at(target.connection(1), 'people'),
    secrets: ['pass word%', 'pass%20word%25'],
    fields: [{ identity: ['id', 'region'], payload: ['note'] }],
    member: (n, variant) => ({
      identity: identity(n),
      upsert: { ...identity(n), note: { variant, text: '\\ "\n' } },
      remove: identity(n),
    }),
    held: async () =>
      (await target.rows('SELECT * FROM people')).map((row) => JSON.parse(JSON.stringify(row))),
    reset: async () => {
      proxy.cut = 'none';
      await target.admin.query('ALTER TABLE people DROP CONSTRAINT IF EXISTS armed; TRUNCATE people');
    },
    faults: {
      'nothing-applied': () => {
        proxy.cut = 'before-begin';
      },
      'answer-lost': () => {
        proxy.cut = 'after-commit';
      },
      'never-answers': () => {
        proxy.cut = 'silent-commit';
      },
      'reject-first': async () => {
        await target.admin.query("ALTER TABLE people ADD CONSTRAINT armed CHECK (id NOT LIKE '% 1')");
      },
    },
  };
}

test('conformance: every check of the kit that applies', async () => {
  const checks = conformanceChecks(await createHarness());
  expect(checks.map(({ name }) => name)).toContain('a lost answer is unknown until it is reconciled');
  const broken: string[] = [];
  for (const check of checks) {
    await check.run().catch((error: unknown) => broken.push(`${check.name}: ${String(error)}`));
  }
  expect(broken).toEqual([]);
});
