/** Destination `postgres` with `swap`, against the conformance kit. */

import { expect, test } from 'vitest';
import { conformanceChecks } from '../../src/destinations/conformance.ts';
import type { ConformanceHarness } from '../../src/destinations/conformance-harness.ts';
import { postgresDestination } from '../../src/destinations/postgres/index.ts';
import { createTarget, startProxy } from './destination-postgres-kit.ts';

type Connection = ReturnType<typeof postgresDestination.connectionSchema.parse>;
type Options = ReturnType<typeof postgresDestination.optionsSchema.parse>;

const FIELDS = [{ identity: ['id', 'region'], payload: ['note'] }];

/** The kit may write without a session; this destination takes no write from who does not hold its fence. */
const adapter: typeof postgresDestination = {
  ...postgresDestination,
  open: async (connection, options, context) => {
    const writer = await postgresDestination.open(connection, options, { ...context, fields: FIELDS });
    await writer.init();
    return writer;
  },
};

const PEOPLE = 'CREATE TABLE people (id text, region int, note jsonb, PRIMARY KEY (region, id))';

async function createHarness(swap: 'replace' | 'rename'): Promise<ConformanceHarness<Connection, Options>> {
  const target = await createTarget(`${PEOPLE}; ALTER TABLE people OWNER TO :role;`);
  const proxy = await startProxy(target.url);
  const options = (table: unknown): Options => postgresDestination.optionsSchema.parse({ table, swap });
  const connection = target.connection(proxy.port);
  const at = (place: Connection, table: unknown) => ({ connection: place, options: options(table) });
  const identity = (n: number) => ({ id: `me'm"ber 😀 ${n}`, region: n % 3 });
  return {
    adapter,
    connection,
    options: options('people'),
    sameTargets: [at(connection, 'public.people'), at({ ...connection, user: 'another' }, '"people"')],
    otherTargets: [at(connection, '"People"'), at({ ...connection, database: 'other' }, 'people')],
    unreachable: at(target.connection(1), 'people'),
    secrets: ['pass word%', 'pass%20word%25'],
    fields: FIELDS,
    member: (n, variant) => ({
      identity: identity(n),
      upsert: { ...identity(n), note: { variant, text: '\\ "\n' } },
      remove: identity(n),
    }),
    held: async () =>
      (await target.rows('SELECT id, region, note FROM people')).map((row) =>
        JSON.parse(JSON.stringify(row)),
      ),
    reset: async () => {
      proxy.cut = 'none';
      await target.admin.query('TRUNCATE people');
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
      'finish-lost': () => {
        proxy.cut = 'after-commit';
      },
    },
  };
}

test.each(['replace', 'rename'] as const)(
  'conformance: every check of the kit that applies, swap: %s',
  async (swap) => {
    const checks = conformanceChecks(await createHarness(swap));
    expect(checks.filter(({ name }) => name.includes('replace:'))).toHaveLength(12);
    const broken: string[] = [];
    for (const check of checks) {
      await check.run().catch((error: unknown) => broken.push(`${check.name}: ${String(error)}`));
    }
    expect(broken).toEqual([]);
  },
);
