/** The database that an index lives in: its connections, and what its errors mean. A server's own words go no further. */

import { once } from 'node:events';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { RetlError } from '../../domain/errors.ts';
import { JournalError, journalError } from '../../journal/errors.ts';
import { openJournal } from '../../journal/pool.ts';

export type IndexConnection = pg.ClientBase;
type Row = Record<string, unknown>;

/** A builder that is frozen in a transaction holds its build; in one it waits for nothing but the storage of an artifact. */
const FROZEN_MS = 60_000;

/** @param url of PostgreSQL, without references */
export function openIndexDatabase(url: string): pg.Pool {
  return openJournal({
    url,
    max: 3,
    applicationName: 'retl-mirror index',
    idleInTransactionMs: FROZEN_MS,
  });
}

/** @throws RetlError */
export async function query(
  db: Pick<pg.ClientBase, 'query'>,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  try {
    return (await db.query<Row>(text, [...values])).rows;
  } catch (error) {
    throw indexError(error);
  }
}

/** @throws RetlError; what `work` throws, after which nothing of it is kept */
export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect().catch((error: unknown) => {
    throw indexError(error);
  });
  try {
    await query(client, 'begin');
    const value = await work(client);
    await query(client, 'commit');
    client.release();
    return value;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** Loads rows in COPY's text form, of which each ends with a line feed. @throws RetlError */
export function copyRows(client: IndexConnection, into: string, rows: Iterable<string>): Promise<void> {
  return load(client, `copy ${into} from stdin`, chunks(rows));
}

/** Loads what binary-rows.ts has made. @throws RetlError */
export function copyBinary(client: IndexConnection, into: string, made: Iterable<Buffer>): Promise<void> {
  return load(client, `copy ${into} from stdin (format binary)`, made);
}

async function load(
  client: IndexConnection,
  statement: string,
  data: Iterable<string | Buffer>,
): Promise<void> {
  const stream = client.query(copyFrom(statement));
  const ended = new Promise<void>((resolve, reject) => {
    stream.once('finish', resolve);
    stream.once('error', reject);
  });
  ended.catch(() => {});
  const fill = async () => {
    for (const chunk of data) if (!stream.write(chunk)) await once(stream, 'drain');
    stream.end();
  };
  try {
    // A stream that broke never drains: whoever fails first decides.
    await Promise.race([Promise.all([fill(), ended]), ended]);
    await ended;
  } catch (error) {
    throw indexError(error);
  }
}

const CHUNK = 65_536;

function* chunks(rows: Iterable<string>): Generator<string> {
  let chunk = '';
  for (const row of rows) {
    chunk += row;
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}

/** A field of COPY's text form. */
export function copyText(value: string): string {
  return NEEDS_ESCAPE.test(value) ? value.replace(ESCAPED, (found) => ESCAPES[found] ?? found) : value;
}

const NEEDS_ESCAPE = /[\\\t\n\r]/;
const ESCAPED = /[\\\t\n\r]/g;
const ESCAPES: { readonly [found: string]: string } = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** Bytes as a field of COPY's text form. */
export function copyBytes(value: Buffer): string {
  return `\\\\x${value.toString('hex')}`;
}

/** What is to be done about a state is told by its rule (docs/indexes.md). */
const RULES: { readonly [sqlState: string]: string } = {
  '28000': 'sign-in',
  '28P01': 'sign-in',
  '3D000': 'no-database',
  '42501': 'rights',
  '3F000': 'table-gone',
  '42P01': 'table-gone',
  '42703': 'table-changed',
  '42804': 'table-changed',
  '42809': 'table-changed',
  '42883': 'table-changed',
  '42P07': 'table-changed',
  '42P10': 'table-changed',
  // Rows that cannot stand beside what the log gives, or columns and constraints that these do not fit.
  '22P02': 'table-changed',
  '22P03': 'table-changed',
  '23502': 'table-changed',
  '23503': 'table-changed',
  '23505': 'table-changed',
  '23514': 'table-changed',
};

/** What `pg` threw, as one of this project's errors. */
export function indexError(error: unknown): unknown {
  if (error instanceof RetlError) return error;
  const { kind, sqlState } = error instanceof JournalError ? error : journalError(error);
  const details = { system: 'postgres', sql_state: sqlState };
  if (kind === 'unavailable') return new RetlError('index.unavailable', details);
  const rule = RULES[sqlState];
  return new RetlError('index.misconfigured', rule === undefined ? details : { ...details, rule });
}
