/** A little database to try things on: customers to mirror, and an empty audience to mirror them into. */

import { Client } from 'pg';
import type { DevStack } from './stack.ts';

const TABLES = `
  CREATE TABLE IF NOT EXISTS customers (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    email text,
    plan text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
  );
  CREATE TABLE IF NOT EXISTS audience (
    email_sha256 text PRIMARY KEY,
    plan text
  );
  INSERT INTO customers (email, plan)
  SELECT format('person%s@example.com', n), CASE WHEN n % 3 = 0 THEN 'vip' ELSE 'free' END
  FROM generate_series(1, 300) AS n
  WHERE NOT EXISTS (SELECT FROM customers)`;

/** Makes the database and its tables where they are missing; returns its owner's URL. */
export async function createPlayground(stack: Pick<DevStack, 'createDatabase'>): Promise<string> {
  const url = await stack.createDatabase('playground');
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(TABLES);
  } finally {
    await client.end();
  }
  return url;
}
