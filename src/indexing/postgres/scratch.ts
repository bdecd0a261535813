/** A second build of an index in a temporary table, of one connection: it is gone with that, whatever happens. */

import type pg from 'pg';
import type { LogPosition } from '../../domain/ids.ts';
import { big, one } from '../../journal/decode.ts';
import type { Batch, Comparison, Scratch } from '../indexer.ts';
import { type KeptBuild, readBuilds } from './builds.ts';
import { type IndexConnection, indexError, query } from './database.ts';
import type { RowTable, TableKind } from './kind.ts';

const TABLE = 'pg_temp.retl_scratch';

export interface ScratchOf {
  readonly pool: pg.Pool;
  readonly kind: TableKind;
  /** Quoted. */
  readonly schema: string;
  readonly live: KeptBuild;
  /** The boundary of the log snapshot that the scratch begins with; `null`: the log's first entry. */
  readonly boundary: LogPosition | null;
}

/** @throws RetlError */
export async function openScratch(of: ScratchOf): Promise<Scratch> {
  const client = await of.pool.connect().catch((error: unknown) => {
    throw indexError(error);
  });
  let table: RowTable = { name: TABLE, keyed: false, late: 0n, rows: 0n };
  try {
    await query(client, `create temporary table retl_scratch (${of.kind.columns})`);
  } catch (error) {
    client.release(true);
    throw error;
  }
  return {
    async apply(batch: Batch) {
      if (batch.kind === 'begin') return;
      await query(client, 'begin');
      const { grown, late } = await of.kind.take(client, table, batch);
      await query(client, 'commit');
      table = { ...table, late, rows: table.rows + grown };
    },
    async compare(position: LogPosition) {
      await query(client, 'begin');
      await of.kind.settle(client, table);
      await query(client, 'commit');
      table = { ...table, late: 0n };
      await query(client, 'begin isolation level repeatable read');
      const compared = await compareAt(client, of, position);
      await query(client, 'commit');
      return compared;
    },
    async close() {
      await client.query('rollback; discard temporary').catch(() => {});
      client.release(true);
    },
  };
}

async function compareAt(client: IndexConnection, of: ScratchOf, position: LogPosition): Promise<Comparison> {
  const { kind, schema, live, boundary } = of;
  const now = (await readBuilds(client, schema, live.definition.name)).find((b) => b.table === live.table);
  if (now?.state !== 'live' || now.mark === null) return { kind: 'replaced' };
  if (now.mark.position !== position) return { kind: 'moved', position: now.mark.position };
  const goesBack = boundary !== null && live.snapshot?.boundary !== boundary;
  const earlier = goesBack && kind.earlier !== null ? { boundary, sql: kind.earlier } : null;
  const rows = `${schema}.rows_${live.table}`;
  const where = earlier === null ? '' : `where position > ${earlier.boundary}`;
  const later = one(await query(client, differences(kind, rows, where)));
  const before = earlier === null ? [] : await query(client, earlier.sql(rows, TABLE, earlier.boundary));
  const all = one(await query(client, `select count(*) as rows from ${rows}`));
  const sum = (column: string) => [later, ...before].reduce((n, row) => n + big(row, column), 0n);
  return {
    kind: 'compared',
    rows: big(all, 'rows'),
    oneByOne: big(later, 'rows'),
    boundary: earlier?.boundary ?? null,
    ...{ missing: sum('missing'), unexpected: sum('unexpected') },
    ...{ counted: now.rows, mark: now.mark },
  };
}

/** Somebody may have added a column of his own to the live one. */
function differences({ names }: TableKind, live: string, where: string): string {
  const from = (table: string) => `select ${names.join(', ')} from ${table} ${where}`;
  return `
    with table_live as (${from(live)}), table_log as (${from(TABLE)})
    select (select count(*) from table_live) as rows,
      (select count(*) from (select * from table_log except all select * from table_live) m) as missing,
      (select count(*) from (select * from table_live except all select * from table_log) u) as unexpected`;
}
