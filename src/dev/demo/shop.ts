/**
 * The demo's shop: some thousands of customers with names as people really write them. Deterministic, so that every
 * demo is the same.
 */

import type { Client } from 'pg';

export const CUSTOMERS = 5_000;

const FIRST_NAMES = [
  'Zoë',
  'José María',
  'Ðorđe',
  "D'Arcy",
  'Nguyễn Thị',
  'Łukasz',
  'Søren',
  'Chloé-Anaïs',
  'Иван',
  '小龍',
  '유진',
  'Müge',
  'Ægir',
  'محمد',
  'יעל',
  'Ana\u0301',
  'Åsa',
  'Bob "Bobby"',
  'Renée',
  'सुनीता',
  'Jürgen',
  'Siân',
  'Œdipe',
];
const LAST_NAMES = [
  "O'Brien",
  'Müller-Lüdenscheidt',
  'van der Berg',
  'García  Márquez',
  'Smith, Jr.',
  'Ñuñez',
  '李',
  'Björk',
  'Šimůnek',
  'de la Cruz',
  'Null',
  'Test; --',
  'Ibn Rušd',
  'MacDonald',
  'Øvergård',
  'Tchaïkovski',
  'Κωνσταντίνου',
  'Strauß',
  'True',
];
const SUFFIXES = ['', '', '', '', ' 🎉', ' ', ' (old account)', '\tPhD', ' & Co.', ' \\ Sons', ' <vip@home>'];
const DOMAINS = ['example.com', 'example.org', 'Mail.Example.NET', 'EXAMPLE.co.uk'];

/** What one visit to the shop changes; numbers are of VIP customers. */
export interface Change {
  readonly joined: number;
  readonly renamed: number;
  readonly left: number;
}

/** Creates the table and fills it; about two customers in five are VIPs, one in forty has no e-mail address. */
export async function openShop(client: Client, readerRole: string): Promise<void> {
  await client.query(`
    CREATE TABLE customers (
      id bigint PRIMARY KEY,
      full_name text NOT NULL,
      email text,
      plan text NOT NULL,
      points numeric NOT NULL,
      updated_at timestamptz NOT NULL)`);
  await client.query(`GRANT SELECT ON customers TO ${readerRole}`);
  await insert(client, 1, CUSTOMERS, (id) => (id % 5 < 2 ? 'vip' : 'free'));
}

/** New, changed and gone VIPs: some lose the plan, some the row, some the e-mail address. */
export async function changeShop(client: Client, change: Change): Promise<void> {
  const { rows } = await client.query<{ next: string }>('SELECT max(id) + 1 AS next FROM customers');
  const first = Number(rows[0]?.next);
  await insert(client, first, first + change.joined - 1, () => 'vip');
  const vips = `SELECT id FROM customers WHERE plan = 'vip' AND email IS NOT NULL AND id < ${first}`;
  await client.query(
    `UPDATE customers SET full_name = full_name || ' (' || id || ')', points = points + 0.10,
            updated_at = updated_at + interval '1 day 1 microsecond'
      WHERE id IN (${vips} ORDER BY id DESC LIMIT $1)`,
    [change.renamed],
  );
  const leaving = { plan: Math.ceil(change.left / 2), row: Math.ceil(change.left / 4) };
  const email = change.left - leaving.plan - leaving.row;
  const oldest = `${vips} ORDER BY id LIMIT $1`;
  await client.query(`UPDATE customers SET plan = 'free' WHERE id IN (${oldest})`, [leaving.plan]);
  await client.query(`DELETE FROM customers WHERE id IN (${oldest})`, [leaving.row]);
  await client.query(`UPDATE customers SET email = NULL WHERE id IN (${oldest})`, [email]);
}

async function insert(
  client: Client,
  from: number,
  to: number,
  planOf: (id: number) => string,
): Promise<void> {
  const ids = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  await client.query(
    `INSERT INTO customers (id, full_name, email, plan, points, updated_at)
     SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::numeric[], $6::timestamptz[])`,
    [
      ids,
      ids.map(nameOf),
      ids.map(emailOf),
      ids.map(planOf),
      ids.map((id) => `${scatter(id, 9_999)}.${String(scatter(id + 1, 100)).padStart(2, '0')}`),
      ids.map((id) =>
        new Date(Date.UTC(2024, 0, 1) + scatter(id, 31_000_000) * 1000 + (id % 1000)).toISOString(),
      ),
    ],
  );
}

function nameOf(id: number): string {
  const pick = (list: readonly string[], salt: number): string => list[scatter(id + salt, list.length)] ?? '';
  return `${pick(FIRST_NAMES, 11)} ${pick(LAST_NAMES, 23)}${pick(SUFFIXES, 37)}`;
}

/** One person never has two addresses; how it is written differs in case and in blanks around it. */
function emailOf(id: number): string | null {
  if (id % 40 === 6) return null;
  const domain = DOMAINS[scatter(id, DOMAINS.length)] ?? 'example.com';
  const address = `customer.${id}+news@${domain}`;
  if (id % 7 === 0) return ` ${address.toUpperCase()} `;
  return id % 11 === 0 ? `${address}\n` : address;
}

/** A number below `limit` that looks random and is the same for the same `id`. */
function scatter(id: number, limit: number): number {
  let mixed = Math.imul(id ^ (id >>> 15), 0x2c1b3c6d);
  mixed = Math.imul(mixed ^ (mixed >>> 12), 0x297a2d39);
  return ((mixed ^ (mixed >>> 15)) >>> 0) % limit;
}
