/**
 * Asks an index in tables of PostgreSQL: build and rows in one snapshot of its database, so that an answer is exactly as of the
 * build's position. Needs no more than to select; a promotion in between is no concern of whoever asks.
 */

import type pg from 'pg';
import type { IndexDefinition } from '../../domain/checkpoint-validation.ts';
import { RetlError } from '../../domain/errors.ts';
import { coarseSign, identityHas } from '../../domain/identity-text.ts';
import { logPosition, sha256FromHex } from '../../domain/ids.ts';
import { hashBytes } from '../../journal/batches.ts';
import { big, date, type Row, text, textOrNull } from '../../journal/decode.ts';
import { hasText } from '../../journal/text-filter.ts';
import type {
  Answer,
  ChangeAction,
  FoundChange,
  HistoryReader,
  IndexedMember,
  Search,
  SearchReader,
} from '../reader.ts';
import { type KeptBuild, readBuilds } from './builds.ts';
import { inTransaction, openIndexDatabase, query } from './database.ts';
import { keptWord } from './words.ts';

export interface PostgresReaderOptions {
  /** Of this release; its name is the index's. */
  readonly definition: IndexDefinition;
  /** Without references. */
  readonly url: string;
  /** Quoted. */
  readonly schema: string;
}

/** A search by part of a value goes through all rows; who waits longer is better told than kept. */
const WITHIN = '60s';
const PAGE = 500;
/** The table of the build was dropped between two statements: another build is live by now. */
const UNDEFINED_TABLE = '42P01';

/** Connects when it is first asked something. */
export function postgresSearchReader(options: PostgresReaderOptions): SearchReader {
  const { pool, ...reader } = openReader(options);
  return {
    ...reader,
    kind: 'membership-search',
    search: (search) =>
      answering(pool, options, search.limit, (client, build) => searchRows(client, options, build, search)),
  };
}

/** Connects when it is first asked something. */
export function postgresHistoryReader(options: PostgresReaderOptions): HistoryReader {
  const { pool, ...reader } = openReader(options);
  return {
    ...reader,
    kind: 'membership-history',
    changes: (target, identityHash, limit) =>
      answering(pool, options, limit, async (client, build) => {
        const values = [target, hashBytes(identityHash), limit + 1];
        return (await query(client, changesSql(options.schema, build), values)).map(decodeChange);
      }),
  };
}

function openReader({ definition, url }: PostgresReaderOptions) {
  const pool = openIndexDatabase(url);
  return {
    pool,
    definition,
    close: () => pool.end(),
  };
}

async function answering<T>(
  pool: pg.Pool,
  { schema, definition }: PostgresReaderOptions,
  limit: number,
  /** One more than the limit, where there are more. */
  ask: (client: pg.PoolClient, build: KeptBuild) => Promise<readonly T[]>,
): Promise<Answer<T>> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await reading(pool, async (client) => {
        const build = await liveBuild(client, schema, definition.name);
        if (build === null) return { kind: 'not-built' };
        if (!isSame(build.definition, definition)) return { kind: 'other-version' };
        const found = await ask(client, build);
        return { kind: 'answered', build, found: found.slice(0, limit), more: found.length > limit };
      });
    } catch (error) {
      const isGone = error instanceof RetlError && error.details.sql_state === UNDEFINED_TABLE;
      if (!isGone || tries === 3) throw error;
    }
  }
}

function reading<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return inTransaction(pool, async (client) => {
    await query(client, 'set transaction isolation level repeatable read, read only');
    await query(client, `set local statement_timeout = '${WITHIN}'`);
    return work(client);
  });
}

async function liveBuild(client: pg.PoolClient, schema: string, index: string): Promise<KeptBuild | null> {
  const [row] = await query(client, 'select to_regclass($1) is not null as there', [`${schema}.index_build`]);
  if (row?.there !== true) return null;
  return (await readBuilds(client, schema, index)).find(({ state }) => state === 'live') ?? null;
}

/** The rows of another schema version are for its own release to read. */
function isSame(built: IndexDefinition, now: IndexDefinition): boolean {
  return built.schemaVersion === now.schemaVersion && built.fingerprint === now.fingerprint;
}

const MEMBER = `mirror, target_id, encode(identity_hash, 'hex') as identity_hash, identity,
  encode(payload_hash, 'hex') as payload_hash, run_id, position, accepted_at, since, since_at`;

/** Each of the ways has an index of its own, but for a part of a value. What they find is held against the text once more. */
export function searchStatement(rows: string, { hashes, mirrors, text: searched }: Search) {
  const values: unknown[] = [hashes.map(hashBytes), mirrors];
  if (searched !== null)
    values.push(searched.match === 'value' ? keptWord(searched.folded) : coarseSign(searched));
  const way =
    searched === null
      ? ''
      : searched.match === 'value'
        ? 'or word = $3 or more @> array[$3]'
        : `or ${hasText('identity', '$3')}`;
  const text = `declare found no scroll cursor for select ${MEMBER} from ${rows}
    where (identity_hash = any($1) ${way}) and ($2::text[] is null or mirror = any($2)) order by identity_hash, target_id`;
  return { text, values };
}

async function searchRows(
  client: pg.PoolClient,
  { schema }: PostgresReaderOptions,
  { table }: KeptBuild,
  search: Search,
): Promise<readonly IndexedMember[]> {
  const { hashes, text: searched, limit } = search;
  const { text: declaration, values } = searchStatement(`${schema}.rows_${table}`, search);
  await query(client, declaration, values);
  const found: IndexedMember[] = [];
  for (;;) {
    const page = await query(client, `fetch ${Math.min(PAGE, limit + 1)} from found`);
    const members = page.map(decodeMember);
    found.push(
      ...members.filter(
        ({ identityHash, identity }) =>
          hashes.includes(identityHash) || (searched !== null && identityHas(identity, searched)),
      ),
    );
    if (page.length === 0 || found.length > limit) return found;
  }
}

function decodeMember(row: Row): IndexedMember {
  return {
    mirror: text(row, 'mirror'),
    target: big(row, 'target_id'),
    identityHash: sha256FromHex(text(row, 'identity_hash')),
    identity: text(row, 'identity'),
    payloadHash: sha256FromHex(text(row, 'payload_hash')),
    run: big(row, 'run_id'),
    position: logPosition(big(row, 'position')),
    acceptedAt: date(row, 'accepted_at'),
    since: logPosition(big(row, 'since')),
    sinceAt: date(row, 'since_at'),
  };
}

const changesSql = (schema: string, { table }: KeptBuild) => `
  select action, position, at, run_id, encode(payload_hash, 'hex') as payload_hash from ${schema}.rows_${table}
  where target_id = $1 and identity_hash = $2 order by position desc limit $3`;

const ACTIONS: readonly ChangeAction[] = ['add', 'change', 'remove', 'held'];

function decodeChange(row: Row): FoundChange {
  const payload = textOrNull(row, 'payload_hash');
  const action = ACTIONS.find((one) => one === text(row, 'action'));
  if (action === undefined) throw new RetlError('index.misconfigured', { rule: 'unknown-action' });
  return {
    action,
    position: logPosition(big(row, 'position')),
    at: date(row, 'at'),
    run: big(row, 'run_id'),
    payloadHash: payload === null ? null : sha256FromHex(payload),
  };
}
