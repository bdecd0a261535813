/**
 * An index in tables of PostgreSQL (design.md section 7). Each build has a table of its own; readers ask a view that has the
 * index's name, which leads to the live one. The indexer's role owns what it makes: it needs the right to create in the
 * schema, or to create the schema, and the right to make temporary tables.
 */

import type pg from 'pg';
import type { IndexDefinition } from '../../domain/checkpoint-validation.ts';
import { RetlError } from '../../domain/errors.ts';
import { sha256FromHex } from '../../domain/ids.ts';
import { sha256Parts } from '../../journal/artifact-store.ts';
import type { Applied, Batch, Indexer, MakeMark, NewBuild, OwnBuild } from '../indexer.ts';
import { buildTable, insertBuild, type KeptBuild, lockBuild, readBuilds, writeBuild } from './builds.ts';
import { inTransaction, openIndexDatabase, query } from './database.ts';
import { pastFrozen } from './frozen.ts';
import { letRead } from './grants.ts';
import { finishTable, type RowTable, type TableKind } from './kind.ts';
import { dropTables } from './late-changes.ts';
import { lookAt } from './look.ts';
import { openScratch } from './scratch.ts';
import { dropStrays, freeNumber } from './strays.ts';
import { astray, mendView, showTable, type ViewPlace } from './view.ts';

export interface PostgresIndexOptions {
  readonly name: string;
  readonly kind: TableKind;
  /** Without references. */
  readonly url: string;
  readonly schema: string;
  readonly holdsLog: boolean;
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function definitionOf(name: string, kind: TableKind): IndexDefinition {
  const described = JSON.stringify([kind.name, kind.columns, kind.shown, kind.keys('t')]);
  return {
    name,
    schemaVersion: kind.schemaVersion,
    fingerprint: sha256FromHex(sha256Parts([Buffer.from(described, 'utf8')])),
  };
}

/** Connects when it is first asked something. */
export function postgresIndexer(options: PostgresIndexOptions): Indexer {
  const { kind, name, holdsLog } = options;
  const schema = quoted(options.schema);
  const definition = definitionOf(name, kind);
  const pool = openIndexDatabase(options.url);
  const view = { schema, kind, definition };
  return {
    definition,
    holdsLog,
    look: () => lookAt(pool, options.schema, name),
    async prepare(purpose) {
      await prepare(pool, options.schema);
      if (purpose === 'follow') await mendView(pool, view);
      // What a builder has retired and not lived to drop.
      await dropRetired(pool, schema, name);
    },
    astray: async () => ((await isThere(pool, schema)) ? astray(pool, view) : null),
    builds: async () => ((await isThere(pool, schema)) ? readBuilds(pool, schema, name) : []),
    begin: (build) => begin(pool, schema, kind, build),
    apply: (build, batch, mark) =>
      pastFrozen(pool, schema, () => apply(pool, schema, kind, build, batch, mark)),
    async promote(build) {
      const promoted = await pastFrozen(pool, schema, () => promote(pool, view, build));
      if (promoted.kind === 'applied') {
        await dropRetired(pool, schema, name);
        await dropStrays(pool, schema);
      }
      return promoted;
    },
    async retire(build) {
      const sql = `update ${schema}.index_build set state = 'retired' where index_name = $1 and build_id = $2 and state = 'building'`;
      await pastFrozen(pool, schema, () => query(pool, sql, [name, build]));
      await dropRetired(pool, schema, name);
    },
    async scratch({ build }, boundary) {
      const live = (await readBuilds(pool, schema, name)).find((kept) => kept.build === build);
      if (live === undefined) throw new RetlError('index.not-built', { index: name });
      return openScratch({ pool, kind, schema, live, boundary });
    },
    close: () => pool.end(),
  };
}

async function isThere(pool: pg.Pool, schema: string): Promise<boolean> {
  const [row] = await query(pool, 'select to_regclass($1) is not null as there', [`${schema}.index_build`]);
  return row?.there === true;
}

/** Two that begin at once both find it done. */
async function prepare(pool: pg.Pool, schemaName: string): Promise<void> {
  const schema = quoted(schemaName);
  if (await isThere(pool, schema)) return;
  await inTransaction(pool, async (client) => {
    await query(client, "select pg_advisory_xact_lock(hashtextextended('retl index ' || $1, 0))", [
      schemaName,
    ]);
    // `if not exists` asks for the right to create schemas even where there is one.
    const [there] = await query(client, 'select to_regnamespace($1) is not null as there', [schema]);
    if (there?.there !== true) await query(client, `create schema ${schema}`);
    await query(client, buildTable(schema));
    await letRead(client, schema, `${schema}.index_build`);
  });
}

async function begin(pool: pg.Pool, schema: string, kind: TableKind, build: NewBuild) {
  return inTransaction(pool, async (client) => {
    const given = await insertBuild(client, schema, build);
    if (given === null) return { kind: 'raced' as const };
    const id = await freeNumber(client, schema, given);
    await query(client, `create table ${schema}.rows_${id} (${kind.columns})`);
    await letRead(client, schema, `${schema}.rows_${id}`);
    return { kind: 'begun' as const };
  });
}

async function apply(
  pool: pg.Pool,
  schema: string,
  kind: TableKind,
  build: OwnBuild,
  batch: Batch,
  mark: MakeMark | null,
): Promise<Applied> {
  return inTransaction(pool, async (client) => {
    const kept = await lockBuild(client, schema, build);
    if (kept === null) return { kind: 'raced' };
    const { grown, late } =
      batch.kind === 'begin'
        ? { grown: 0n, late: kept.late }
        : await kind.take(client, tableOf(schema, kept), batch);
    const rows = kept.rows + grown;
    const next: KeptBuild = {
      ...kept,
      rows,
      late,
      loaded: batch.kind === 'members' ? batch.next : kept.loaded,
      // The artifact is durable before the row that refers to it commits; where that fails, it is an orphan, and harmless.
      ...(mark === null ? {} : { mark: await mark(rows), previous: kept.mark?.reference ?? null }),
    };
    await writeBuild(client, schema, next);
    return { kind: 'applied', build: next };
  });
}

function tableOf(schema: string, { table, state, late, rows }: KeptBuild): RowTable {
  return { name: `${schema}.rows_${table}`, keyed: state === 'live', late, rows };
}

async function promote(pool: pg.Pool, view: ViewPlace, build: OwnBuild): Promise<Applied> {
  const { schema, kind } = view;
  const { name } = build.definition;
  return inTransaction(pool, async (client) => {
    const kept = await lockBuild(client, schema, build);
    if (kept === null) return { kind: 'raced' };
    const table = tableOf(schema, kept);
    if (!table.keyed) await finishTable(client, kind, table);
    const state = `update ${schema}.index_build set state = $2, late = 0 where index_name = $1`;
    await query(client, `${state} and state = 'live'`, [name, 'retired']);
    await query(client, `${state} and table_id = $3`, [name, 'live', kept.table]);
    await showTable(client, view, kept.table);
    return { kind: 'applied', build: { ...kept, state: 'live', late: 0n } };
  });
}

/** What nobody sees any more; readers that are still at it are not waited for long, the next time does it. */
async function dropRetired(pool: pg.Pool, schema: string, name: string): Promise<void> {
  const waiting = await query(
    pool,
    `select table_id from ${schema}.index_build where index_name = $1 and state = 'retired' and not dropped`,
    [name],
  );
  for (const { table_id: id } of waiting) {
    await inTransaction(pool, async (client) => {
      await query(client, "set local lock_timeout = '2s'");
      await dropTables(client, `${schema}.rows_${String(id)}`);
      await query(client, `update ${schema}.index_build set dropped = true where table_id = $1`, [id]);
    }).catch(() => undefined);
  }
}
