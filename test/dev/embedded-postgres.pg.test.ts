import { Client } from 'pg';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';

test('a test database is empty, UTF-8, and gone after drop', async () => {
  const database = await createTestDatabase();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query(
    `select current_setting('server_encoding') as encoding, lower('ÄÉ') as lowered, 'a' < 'B' as natural_order,
            (select count(*)::int from pg_tables where schemaname not in ('pg_catalog', 'information_schema')) as tables`,
  );
  expect(rows).toEqual([{ encoding: 'UTF8', lowered: 'äé', natural_order: false, tables: 0 }]);
  client.on('error', () => undefined);
  await database.drop();
  const again = new Client({ connectionString: database.url });
  await expect(again.connect()).rejects.toMatchObject({ code: '3D000' });
});
