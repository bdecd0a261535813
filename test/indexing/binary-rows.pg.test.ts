/** Rows in COPY's binary form, as the server reads them. */

import pg from 'pg';
import { expect, test } from 'vitest';
import { BinaryRows, fixedFields } from '../../src/indexing/postgres/binary-rows.ts';
import { copyBinary } from '../../src/indexing/postgres/database.ts';
import { createTestDatabase } from '../support/postgres.ts';

test('values of every kind and length come in as they are, in as many chunks as it takes', async () => {
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(
    'create table loaded (n bigint, at timestamptz, name text, hash bytea, value text, more text[])',
  );
  const texts = ['', 'a\tb\\c\n"\'', 'Ünï\u0301 😀', 'x'.repeat(2_000_000), '😀'.repeat(400_000)];
  const values = Array.from({ length: 40 }, (_, i) => texts[i % texts.length] ?? '');
  const hashes = Buffer.from(Array.from({ length: 64 }, (_, i) => 255 - i));
  const chunks: number[] = [];
  function* made(): Generator<Buffer> {
    const rows = new BinaryRows();
    const fixed = fixedFields([-(2n ** 63n), { micros: 1_700_000_000_123_456n }, 'naïve']);
    for (const [i, value] of values.entries()) {
      rows.row(6);
      rows.fixed(fixed);
      rows.bytes(hashes, i % 32, 32 + (i % 32));
      rows.text(value);
      if (i % 2 === 0) rows.nothing();
      else rows.texts(['one', value.slice(0, 4), 'NULL', '{"}']);
      const full = rows.full();
      if (full !== null) {
        chunks.push(full.length);
        yield full;
      }
    }
    yield rows.end();
  }
  await copyBinary(client, 'loaded', made());
  const { rows } = await client.query(
    `select n, (extract(epoch from at) * 1000000)::bigint as micros, name, hash, value, more from loaded order by ctid`,
  );
  await client.end();
  await database.drop();
  expect(chunks.length).toBeGreaterThan(10);
  expect(rows).toHaveLength(values.length);
  for (const [i, row] of rows.entries()) {
    const more = i % 2 === 0 ? null : ['one', values[i]?.slice(0, 4), 'NULL', '{"}'];
    expect(row).toMatchObject({ n: `${-(2n ** 63n)}`, micros: '1700000000123456', name: 'naïve', more });
    expect(row.value === values[i], `value ${i}`).toBe(true);
    expect(row.hash).toEqual(hashes.subarray(i % 32, 32 + (i % 32)));
  }
});
