import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { difference, expectedCounts, expectedMembers, memberSet } from '../../src/dev/demo/expectation.ts';
import { CUSTOMERS, changeShop, openShop } from '../../src/dev/demo/shop.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts';

let database: TestDatabase;
let shop: Client;

beforeAll(async () => {
  database = await createTestDatabase();
  shop = new Client({ connectionString: database.url });
  await shop.connect();
  await openShop(shop, 'current_user');
});
afterAll(async () => {
  await shop.end();
  await database.drop();
});

test('two customers in five are VIPs, and no two VIPs share an address however it is written', async () => {
  const members = await expectedMembers(shop);
  const { rows } = await shop.query(
    "select count(*)::int as vips, count(email)::int as reachable from customers where plan = 'vip'",
  );
  expect(rows).toEqual([{ vips: (CUSTOMERS * 2) / 5, reachable: members.size }]);
  expect(members.size).toBeLessThan((CUSTOMERS * 2) / 5);
});

test('a visit to the shop changes exactly as many VIPs as it says', async () => {
  const before = await expectedMembers(shop);
  await changeShop(shop, { joined: 40, renamed: 30, left: 20 });
  const after = await expectedMembers(shop);
  const counts = expectedCounts(before, after);
  // One in forty of those who joined has no address, and is no member.
  expect(counts).toMatchObject({ changed: 30, removed: 20, unchanged: before.size - 50 });
  expect(counts.added).toBe(39);
});

test('a member that is missing, left over or different is told apart, whatever the order of its fields', () => {
  const expected = memberSet([
    { email_sha256: 'a', plan: 'vip', name: 'A' },
    { email_sha256: 'b', plan: 'vip', name: 'B' },
    { email_sha256: 'c', plan: 'vip', name: 'C' },
  ]);
  const held = memberSet([
    { name: 'A', plan: 'vip', email_sha256: 'a' },
    { name: 'b', plan: 'vip', email_sha256: 'b' },
    { name: 'D', plan: 'vip', email_sha256: 'd' },
  ]);
  expect(difference(expected, held)).toEqual({ missing: 1, leftOver: 1, different: 1 });
  expect(() => memberSet([{ email_sha256: 'a' }, { email_sha256: 'a' }])).toThrow('listed twice');
});
