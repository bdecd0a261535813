/** A kind of index in PostgreSQL tables: what a row of it is, and how a batch of the log changes the rows. */

import type { Batch } from '../indexer.ts';
import { type IndexConnection, query } from './database.ts';

export type RowBatch = Exclude<Batch, { readonly kind: 'begin' }>;

/** The table of one build; its name is made of numbers only, or is a temporary table's. */
export interface RowTable {
  readonly name: string;
  /** A fresh build is loaded without keys, and gets them when it is finished; the live one has them. */
  readonly keyed: boolean;
  /** Changes that wait beside the rows of a build without keys; see late-changes.ts. */
  readonly late: bigint;
  /** How many rows it comes to hold with these. */
  readonly rows: bigint;
}

export interface Taken {
  /** By how many the rows have become more. */
  readonly grown: bigint;
  readonly late: bigint;
}

export interface TableKind {
  readonly name: string;
  /** Raised with every change of what the rows are; then every index of the kind is built anew. Each kind has its own thousand. */
  readonly schemaVersion: number;
  /** Columns with their types, as in CREATE TABLE. */
  readonly columns: string;
  /** The names of all of these. */
  readonly names: readonly string[];
  /** What the view shows of a row. */
  readonly shown: string;
  /** Statements that create the keys of a table. */
  keys(table: string): readonly string[];
  /**
   * A build that began before the log snapshot has rows up to its boundary that no replay of the log gives any more. `null`: that
   * changes none of its rows; else an expression of how many rows of `log`, which begins with the snapshot, are `missing` in
   * `live`, and how many of that are `unexpected`, as far as the snapshot tells.
   */
  readonly earlier: ((live: string, log: string, boundary: bigint) => string) | null;
  /** Takes a batch in. @throws RetlError */
  take(client: IndexConnection, table: RowTable, batch: RowBatch): Promise<Taken>;
  /** Has changes that wait beside the rows become rows: whoever reads these is to see all. @throws RetlError */
  settle(client: IndexConnection, table: RowTable): Promise<void>;
}

/** A million rows are sorted in memory, where the server has less for such work; for the rest of the transaction. */
const SORT_MEMORY = `
  select set_config('maintenance_work_mem', '256MB', true)
  where pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes('256MB')`;

/** Makes a table that was loaded without keys one that readers can ask, in a transaction. @throws RetlError */
export async function finishTable(client: IndexConnection, kind: TableKind, table: RowTable): Promise<void> {
  await kind.settle(client, table);
  await query(client, SORT_MEMORY);
  for (const statement of kind.keys(table.name)) await query(client, statement);
  await query(client, `analyze ${table.name}`);
}
