/**
 * The view by which readers ask an index, whatever build is live (design.md section 7). Somebody may take it away or change it: it
 * is looked at whenever the index follows the log, and put back. Where the name is another thing's, or the view somebody else's, a
 * person decides.
 */

import type pg from 'pg';
import type { IndexDefinition } from '../../domain/checkpoint-validation.ts';
import { RetlError } from '../../domain/errors.ts';
import { bigOrNull, flag, type Row, textOrNull } from '../../journal/decode.ts';
import type { Astray } from '../indexer.ts';
import { type IndexConnection, inTransaction, query } from './database.ts';
import { pastFrozen } from './frozen.ts';
import { letRead } from './grants.ts';
import type { TableKind } from './kind.ts';

export interface ViewPlace {
  /** Quoted. */
  readonly schema: string;
  readonly kind: TableKind;
  /** Its name is the view's. */
  readonly definition: IndexDefinition;
}

/** What stands there, beside the live build, where that is of this definition; what the view says is told in the server's own words. */
const LOOK = (schema: string) => `
  select b.table_id, t.oid is not null as has_rows, v.relkind::text as relkind,
    v.oid is null or pg_has_role(v.relowner, 'usage') as is_ours,
    case when v.relkind = 'v' then pg_get_viewdef(v.oid) end as said,
    exists (select from pg_rewrite r join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
      where r.ev_class = v.oid and d.refobjid = t.oid) as leads_there,
    exists (select from ${schema}.index_build o where o.index_name = $2 and o.state = 'building') as is_building
  from (select) one
  left join ${schema}.index_build b on b.index_name = $2 and b.state = 'live' and b.schema_version = $3 and b.fingerprint = $4
  left join pg_class t on t.relnamespace = to_regnamespace($1) and t.relname = 'rows_' || b.table_id and t.relkind = 'r'
  left join pg_class v on v.relnamespace = to_regnamespace($1) and v.relname = $2`;

interface Looked {
  /** Of the live build; `null`: there is none of this definition. */
  readonly table: bigint | null;
  readonly isBuilding: boolean;
  readonly fault: Astray | null;
}

async function look(db: Pick<pg.ClientBase, 'query'>, place: ViewPlace): Promise<Looked> {
  const { schema, definition } = place;
  const { name, schemaVersion, fingerprint } = definition;
  const [row = {}] = await query(db, LOOK(schema), [schema, name, schemaVersion, fingerprint]);
  const table = bigOrNull(row, 'table_id');
  return { table, isBuilding: flag(row, 'is_building'), fault: faultOf(place, table, row) };
}

function faultOf(place: ViewPlace, table: bigint | null, row: Row): Astray | null {
  const relkind = textOrNull(row, 'relkind');
  if (relkind !== null && relkind !== 'v') return 'name-taken';
  const isOurs = flag(row, 'is_ours');
  if (table === null) return isOurs ? null : 'other-owner';
  if (!flag(row, 'has_rows')) return 'table-gone';
  if (relkind === null) return 'view-gone';
  if (flag(row, 'leads_there') && saysThat(place, table, textOrNull(row, 'said') ?? '')) return null;
  return isOurs ? 'view-changed' : 'other-owner';
}

/** Servers differ in what they quote and qualify, and in how they break lines. */
export function saysThat(
  { schema, kind }: Pick<ViewPlace, 'schema' | 'kind'>,
  table: bigint,
  said: string,
): boolean {
  const plain = (words: string) => words.replaceAll(/[\s"]+/g, '');
  const shown = `SELECT${plain(kind.shown)}FROM`;
  const ends = [`rows_${table};`, `${plain(schema)}.rows_${table};`];
  return ends.some((end) => `${shown}${end}` === plain(said).replaceAll(`rows_${table}.`, ''));
}

/** What keeps readers from the live build. Changes nothing. @throws RetlError */
export async function astray(pool: pg.Pool, place: ViewPlace): Promise<Astray | null> {
  const { fault } = await look(pool, place);
  // A promotion may have come in between what was read of the build and of the view.
  return fault === null ? null : (await look(pool, place)).fault;
}

/** Puts the view back where it does not show the live build. @throws RetlError with the rule where a person has to decide */
export async function mendView(pool: pg.Pool, place: ViewPlace): Promise<void> {
  if ((await look(pool, place)).fault === null) return;
  await pastFrozen(pool, place.schema, () =>
    inTransaction(pool, async (client) => {
      // Nobody promotes another one meanwhile.
      const live = `select from ${place.schema}.index_build where index_name = $1 and state = 'live' for update`;
      await query(client, live, [place.definition.name]);
      await mend(client, place);
    }),
  );
}

async function mend(client: IndexConnection, place: ViewPlace): Promise<void> {
  const { table, isBuilding, fault } = await look(client, place);
  if (fault === 'name-taken' || fault === 'other-owner') throw taken(place, fault);
  // The one that is being built takes the place of one whose rows are gone; else it is refused for that.
  if (table === null || fault === null || (fault === 'table-gone' && isBuilding)) return;
  await query(client, 'savepoint mend');
  try {
    await show(client, place, table);
  } catch (error) {
    // Likewise one whose table somebody has changed, so that nothing leads there any more.
    if (!isBuilding || !(error instanceof RetlError) || error.details.rule !== 'table-changed') throw error;
    await query(client, 'rollback to savepoint mend');
  }
}

/** Has the view lead to the table of a build. @throws RetlError; with the rule where the name is not the index's */
export async function showTable(client: IndexConnection, place: ViewPlace, table: bigint): Promise<void> {
  const { fault } = await look(client, place);
  if (fault === 'name-taken' || fault === 'other-owner') throw taken(place, fault);
  await show(client, place, table);
}

function taken({ schema }: ViewPlace, rule: Astray): RetlError {
  return new RetlError('index.misconfigured', {
    system: 'postgres',
    rule,
    schema: schema.replaceAll('"', ''),
  });
}

/** What was granted on it stays, unless its columns are others than before. */
async function show(
  client: IndexConnection,
  { schema, kind, definition }: ViewPlace,
  table: bigint,
): Promise<void> {
  const view = `${schema}."${definition.name.replaceAll('"', '""')}"`;
  const select = `select ${kind.shown} from ${schema}.rows_${table}`;
  await query(client, 'savepoint view');
  try {
    await query(client, `create or replace view ${view} as ${select}`);
  } catch {
    await query(client, 'rollback to savepoint view');
    await query(client, `drop view if exists ${view}`);
    await query(client, `create view ${view} as ${select}`);
  }
  await letRead(client, schema, view);
}
