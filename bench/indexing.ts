/**
 * Replay of the log into indexes of PostgreSQL, beside a bare COPY: `psql \copy` in binary form of the very rows that the index
 * came to hold, from a file into a logged table of the same columns on the same server, without an index. Replay is timed from
 * the begun build to its last checkpoint; then, with its keys and the promotion, to where readers see it, beside that COPY and
 * the same keys made on its table.
 */

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from 'pg';
import { logPosition } from '../src/domain/ids.ts';
import type { Indexer, OwnBuild } from '../src/indexing/indexer.ts';
import { membershipHistory } from '../src/indexing/postgres/history.ts';
import { postgresIndexer } from '../src/indexing/postgres/indexer.ts';
import type { TableKind } from '../src/indexing/postgres/kind.ts';
import { membershipSearch } from '../src/indexing/postgres/search.ts';
import { rebuild } from '../src/indexing/rebuild.ts';
import { follow } from '../src/indexing/replay.ts';
import { journalArtifacts } from '../src/journal/artifacts.ts';
import { entryAt } from '../src/journal/log-reader.ts';
import { openJournal } from '../src/journal/pool.ts';
import { copy, onServer, seconds } from './floor.ts';
import { GOALS } from './goals.ts';

export interface Replayed {
  readonly what: string;
  readonly effects: number;
  /** Seconds. */
  readonly bare: number;
  readonly bareWithKeys: number;
  readonly replay: number;
  readonly seen: number;
}

const SCHEMA = 'retl_index';

/** The first mirror's additions into each kind, and all of the log, changes among it, into the search index. */
export async function measureReplay(
  url: string,
  scratch: string,
  tries: number,
): Promise<readonly Replayed[]> {
  const [first, head] = await onServer(url, async (client) => {
    const { rows } = await client.query<{ first: string; head: string }>(
      `select (select min(position) from retl.log_entry where kind = 'finish') as first, position as head from retl.log_head`,
    );
    return [BigInt(rows[0]?.first ?? 0), BigInt(rows[0]?.head ?? 0)];
  });
  const cases = [
    ['additions alone', membershipSearch, first],
    ['additions alone', membershipHistory, first],
    ['1 % of them changed', membershipSearch, head],
  ] as const;
  const measured: Replayed[] = [];
  for (const [log, kind, goal] of cases) {
    const rounds: Replayed[] = [];
    for (let i = 0; i < tries; i += 1)
      rounds.push(await oneRound(url, scratch, `${kind.name}, ${log}`, kind, goal));
    measured.push(medianOf(rounds));
    console.log(measured.at(-1));
  }
  return measured;
}

function medianOf(rounds: readonly Replayed[]): Replayed {
  const [one] = rounds;
  if (one === undefined) throw new Error('nothing was measured');
  const median = (key: 'bare' | 'bareWithKeys' | 'replay' | 'seen') =>
    rounds.map((r) => r[key]).sort((x, y) => x - y)[Math.floor(rounds.length / 2)] ?? 0;
  return {
    ...one,
    bare: median('bare'),
    bareWithKeys: median('bareWithKeys'),
    replay: median('replay'),
    seen: median('seen'),
  };
}

async function oneRound(
  url: string,
  scratch: string,
  what: string,
  kind: TableKind,
  goal: bigint,
): Promise<Replayed> {
  const journal = openJournal({ url, max: 4 });
  const indexer = postgresIndexer({ name: `bench-${kind.name}`, kind, url, schema: SCHEMA, holdsLog: false });
  try {
    const artifacts = journalArtifacts(journal);
    const deps = { journal, artifacts, builder: 'bench', now: () => Date.now(), warn: console.warn };
    if ((await entryAt(journal, logPosition(goal))) === null) throw new Error('the log does not go that far');
    await rebuild(deps, indexer, logPosition(goal));
    const timed = timedPromotion(indexer);
    const seen = await seconds(async () => {
      const followed = await follow(deps, timed.indexer);
      if (followed.kind !== 'frozen') throw new Error(`the replay ended as ${followed.kind}`);
    });
    const own = await onServer(url, (client) => bareCopy(client, url, scratch, kind));
    const { rows } = await journal.query<{ n: string }>(
      'select sum(effects) as n from retl.log_entry where position <= $1',
      [goal],
    );
    return { what, effects: Number(rows[0]?.n), ...own, replay: seen - timed.spent(), seen };
  } finally {
    await indexer.close();
    await journal.end();
  }
}

function timedPromotion(indexer: Indexer) {
  let spent = 0;
  const promote = async (build: OwnBuild) => {
    let promoted: Awaited<ReturnType<Indexer['promote']>> = { kind: 'raced' };
    spent = await seconds(async () => {
      promoted = await indexer.promote(build);
    });
    return promoted;
  };
  return { indexer: { ...indexer, promote }, spent: () => spent };
}

/** Of the rows of the live build. */
async function bareCopy(client: Client, url: string, scratch: string, kind: TableKind) {
  const { rows } = await client.query<{ name: string }>(
    `select '${SCHEMA}.rows_' || table_id as name from ${SCHEMA}.index_build where state = 'live' and index_name = $1`,
    [`bench-${kind.name}`],
  );
  const file = join(scratch, 'index.bin');
  const table = `${SCHEMA}.bench_bare`;
  await copy(url, `\\copy ${rows[0]?.name} to '${file}' with (format binary)`);
  try {
    await client.query(`drop table if exists ${table}; create table ${table} (like ${rows[0]?.name})`);
    const bare = await seconds(() => copy(url, `\\copy ${table} from '${file}' with (format binary)`));
    const keys = await seconds(() => client.query([...kind.keys(table), `analyze ${table}`].join(';')));
    return { bare, bareWithKeys: bare + keys };
  } finally {
    await client.query(`drop table if exists ${table}`);
    await rm(file, { force: true });
  }
}

/** What is held to the goal. */
export function heldReplays(measured: readonly Replayed[]): readonly (readonly ['replay', number])[] {
  return measured.map(({ bare, replay }) => ['replay', bare / replay]);
}

export function renderReplay(measured: readonly Replayed[]): string {
  const f = (n: number) => n.toFixed(2);
  const lines = measured.map(
    (m) =>
      `| ${m.what} | ${m.effects} | ${f(m.bare)} | ${f(m.replay)} | ${f(m.bare / m.replay)} | ${f(m.seen)} | ${f(m.bareWithKeys / m.seen)} | ${f(m.bare / m.seen)} |`,
  );
  return `
Replay of the log into an index of PostgreSQL. Bare COPY: \`psql \\copy\`, binary, of the rows that the index came to hold, from a file into a logged table of the same columns
without an index. Goal: at least ${GOALS.replay.value} of its rate to the last checkpoint.

| index | effects | bare COPY | replay to the last checkpoint | rate (bare COPY = 1) | until readers see it, with its keys | rate (COPY and the same keys = 1) | rate (bare COPY = 1) |
|---|---|---|---|---|---|---|---|
${lines.join('\n')}
`;
}
