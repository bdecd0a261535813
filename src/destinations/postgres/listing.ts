/**
 * What a table holds, read by a cursor, and so from one snapshot. Identities are told as the column writes them (columns.ts:
 * whatever was accepted was written so), payloads as a digest of what the columns hold: a payload of the journal's goes through
 * the same columns before it is compared, so that 0.1 in a column of two digits is 0.10 on both sides. A row whose identity is NULL,
 * or in part, is told with null there: the mirror has not written it.
 */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import { canonicalJson } from '../../domain/canonical-json.ts';
import type { Listed, ListedMember, Listing, SentMember } from '../listing.ts';
import { LISTING_PAGE } from '../listing.ts';
import { canonicalText, identityReader, payloadReader } from './columns.ts';
import { type QualifiedName, quoteName, quoteQualified } from './identifier.ts';
import type { Binding } from './statements.ts';
import type { Table } from './table.ts';

/** Where the members stand, and in which columns. */
export interface ListedTable {
  readonly name: QualifiedName;
  readonly table: Table;
  readonly identity: readonly Binding[];
  /** Empty: the payload's fields are not known. */
  readonly payload: readonly Binding[];
}

/** Work in a transaction that only reads; its answer, or why there is none. */
export type Reading = <T>(
  work: (client: PoolClient) => Promise<T>,
) => Promise<T | Exclude<Listed, { kind: 'listed' }>>;

const CURSOR = 'retl_listing';
const rowSchema = z.object({ identity: z.array(z.string().nullable()), payload: z.string().nullable() });

/** Pages go from the transaction to whoever asks for them, one at a time: the cursor waits meanwhile. */
export function tableListing(
  find: (client: PoolClient) => Promise<ListedTable | string>,
  read: Reading,
): Listing {
  return {
    pages: () => pages(find, read),
    async asListed(members) {
      const answer = await read<Listed>(async (client) => {
        const table = await find(client);
        return typeof table === 'string'
          ? { kind: 'misconfigured', code: table }
          : asListed(client, table, members);
      });
      return answer;
    },
  };
}

async function* pages(
  find: (client: PoolClient) => Promise<ListedTable | string>,
  read: Reading,
): AsyncGenerator<Listed, void> {
  const hand = new Handover<Listed>();
  const done = read<Listed | null>(async (client) => {
    await client.query('SET TRANSACTION READ ONLY');
    const table = await find(client);
    if (typeof table === 'string') return { kind: 'misconfigured', code: table };
    await client.query(`DECLARE ${CURSOR} NO SCROLL CURSOR FOR ${listStatement(table)}`);
    for (;;) {
      const { rows } = await client.query(`FETCH ${LISTING_PAGE} FROM ${CURSOR}`);
      if (rows.length === 0) return null;
      if (!(await hand.give({ kind: 'listed', members: rows.map((row) => memberOf(row, table)) })))
        return null;
    }
  }).finally(() => hand.end());
  // Whoever stops asking lets the transaction end; what it ends with is then nobody's affair.
  done.catch(() => undefined);
  try {
    for (let page = await hand.take(); page !== null; page = await hand.take()) yield page;
    const last = await done;
    if (last !== null) yield last;
  } finally {
    hand.stop();
    await done.catch(() => undefined);
  }
}

/** One page from one side to the other; the giver waits until it is taken. */
class Handover<T> {
  #waiting: { readonly page: T; readonly taken: (goesOn: boolean) => void } | null = null;
  #wake: (() => void) | null = null;
  #isOver = false;

  /** Resolves to whether more is wanted. */
  give(page: T): Promise<boolean> {
    if (this.#isOver) return Promise.resolve(false);
    return new Promise((taken) => {
      this.#waiting = { page, taken };
      this.#wake?.();
    });
  }

  /** `null`: there is nothing more. */
  async take(): Promise<T | null> {
    if (this.#waiting === null && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.taken(true);
    return waiting?.page ?? null;
  }

  end(): void {
    this.#isOver = true;
    this.#wake?.();
  }

  stop(): void {
    this.#isOver = true;
    this.#waiting?.taken(false);
    this.#waiting = null;
  }
}

/** As `removeStatement` does: rows of inheritance children are not the table's own. */
function listStatement({ name, table, identity, payload }: ListedTable): string {
  const column = ({ column: { name: own } }: Binding) => `t.${quoteName(own)}`;
  const keys = identity.map((bound) => canonicalText(column(bound), bound.column));
  return `SELECT ${arrayOf(keys)} AS identity, ${digestOf(payload.map(column))} AS payload
    FROM ${table.kind === 'p' ? '' : 'ONLY '}${quoteQualified(name)} AS t`;
}

/** The members in their order; where one lacks a field, its payload is another's word as well and is not told. */
async function asListed(
  client: PoolClient,
  table: ListedTable,
  members: readonly SentMember[],
): Promise<Listed> {
  const { identity, payload } = table;
  const rows = members.map((member) => {
    const fields = z.record(z.string(), z.unknown()).parse(JSON.parse(member.payload));
    const keys = z.record(z.string(), z.unknown()).parse(JSON.parse(member.identity));
    return {
      isWhole: payload.every(({ field }) => Object.hasOwn(fields, field)),
      row: { ...fields, ...keys },
    };
  });
  const body = JSON.stringify(rows.map(({ row }) => row));
  const found = await client.query(convertStatement(table), [body]);
  if (identity.length === 0 || found.rows.length !== members.length)
    throw new RangeError('the table has told of other members than were asked about');
  return {
    kind: 'listed',
    members: found.rows.map((row, index) => {
      const member = memberOf(row, table);
      return rows[index]?.isWhole === true ? member : { ...member, payload: null };
    }),
  };
}

function convertStatement({ identity, payload }: ListedTable): string {
  const keys = identity.map(({ field, column }) => ({
    field,
    column,
    reader: identityReader(field, column),
  }));
  const rest = payload.map(({ field, column }) => ({ field, reader: payloadReader(field, column), column }));
  const read = [...keys, ...rest].map(({ field, reader }) => `${quoteName(field)} ${reader.readAs}`);
  const texts = keys.map(({ reader, column }) => canonicalText(reader.value, column));
  const values = rest.map(({ reader, column }) => `(${reader.value})::${column.type}`);
  return `SELECT ${arrayOf(texts)} AS identity, ${digestOf(values)} AS payload
    FROM ROWS FROM (pg_catalog.json_to_recordset($1::json) AS (${read.join(', ')})) WITH ORDINALITY
      AS j (${[...keys, ...rest].map(({ field }) => quoteName(field)).join(', ')}, "retl ordinality")
    ORDER BY "retl ordinality"`;
}

function arrayOf(texts: readonly string[]): string {
  return `pg_catalog.json_build_array(${texts.join(', ')})`;
}

/** A digest of the values' own texts, which tells NULL from every text. */
function digestOf(values: readonly string[]): string {
  if (values.length === 0) return 'NULL::pg_catalog.text';
  const texts = values.map((value) => `(${value})::pg_catalog.text`).join(', ');
  return `pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
    pg_catalog.json_build_array(${texts})::pg_catalog.text, 'UTF8')), 'hex')`;
}

function memberOf(row: unknown, { identity }: ListedTable): ListedMember {
  const { identity: texts, payload } = rowSchema.parse(row);
  const named = Object.fromEntries(identity.map(({ field }, index) => [field, texts[index] ?? null]));
  return { identity: canonicalJson(named), payload };
}
