/**
 * The floor: what plain SQL and COPY take on the same server for the same rows. Each figure is the median of `tries`.
 *
 *   a  source out, COPY text to nowhere
 *   b  member rows in, COPY binary, logged, no index
 *   c  unique index on the identity hash
 *   d  full-join diff of the members against an equal membership, as counts
 *   e  membership rows INSERT … SELECT in key order
 */

import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';

const psql = promisify(execFile);

export interface Floor {
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly d: number;
  readonly e: number;
}

const SOURCE = `
  create table customers (id bigint primary key, email text not null, plan text not null, note text not null,
    updated_at timestamptz not null)`;

/** Fills `customers` with rows of about 150 bytes, the same ones every time. */
export async function fillSource(url: string, rows: number): Promise<void> {
  await onServer(url, async (client) => {
    await client.query('drop table if exists customers');
    await client.query(SOURCE);
    await client.query(
      `insert into customers select i, 'user' || i || '@example.com', (array['free', 'vip', 'pro'])[1 + i % 3],
         md5(i::text) || md5((i * 7)::text), timestamptz '2026-01-01' + i * interval '1 second'
       from generate_series(1, $1::bigint) i`,
      [rows],
    );
    await client.query('vacuum analyze customers');
  });
}

const MEMBERS = `
  select '["' || id || '"]' as source_key, sha256(convert_to(email, 'UTF8')) as identity_hash,
    sha256(convert_to(email || plan || updated_at, 'UTF8')) as payload_hash,
    '{"email":"' || email || '","note":"' || note || '","plan":"' || plan || '","seen_at":"' || updated_at || '"}' as upsert
  from customers`;

/** Seconds of each step, the median of `tries`. */
export async function measureFloor(url: string, scratch: string, tries: number): Promise<Floor> {
  const file = join(scratch, 'members.bin');
  const rounds: Floor[] = [];
  await onServer(url, (client) =>
    client.query('drop table if exists floor_member, floor_membership, floor_wide'),
  );
  await copy(url, `\\copy (${MEMBERS.replaceAll('\n', ' ')}) to '${file}' with (format binary)`);
  try {
    for (let i = 0; i < tries; i++) rounds.push(await oneRound(url, file));
  } finally {
    await rm(file, { force: true });
  }
  const median = (key: keyof Floor) =>
    rounds.map((r) => r[key]).sort((x, y) => x - y)[Math.floor(tries / 2)] ?? 0;
  return { a: median('a'), b: median('b'), c: median('c'), d: median('d'), e: median('e') };
}

async function oneRound(url: string, file: string): Promise<Floor> {
  return onServer(url, async (client) => {
    const sql = (text: string) => seconds(() => client.query(text));
    const a = await seconds(() => copy(url, "\\copy (select * from customers) to '/dev/null'"));
    await client.query(
      'create table floor_member (source_key text, identity_hash bytea, payload_hash bytea, upsert text)',
    );
    const b = await seconds(() => copy(url, `\\copy floor_member from '${file}' with (format binary)`));
    const c = await sql('create unique index on floor_member (identity_hash)');
    await client.query('analyze floor_member');
    await client.query(
      'create table floor_membership (identity_hash bytea primary key, payload_hash bytea, sequence bigint)',
    );
    const e = await sql(
      'insert into floor_membership select identity_hash, payload_hash, 1 from floor_member order by identity_hash',
    );
    await client.query('analyze floor_membership');
    const d = await sql(`
      select count(*) filter (where h.identity_hash is null), count(*) filter (where m.identity_hash is null),
        count(*) filter (where h.payload_hash <> m.payload_hash)
      from floor_member m full join floor_membership h on h.identity_hash = m.identity_hash`);
    await client.query('drop table floor_member, floor_membership');
    return { a, b, c, d, e };
  });
}

export async function copy(url: string, command: string): Promise<void> {
  await psql('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', url, '-c', command]);
}

export async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

export async function onServer<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
