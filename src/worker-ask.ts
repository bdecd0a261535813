/**
 * Asks indexes, and the journal where none of them will do: for `retl find` and `retl explain`, as the person who looks. It alone
 * of what the command line starts loads the systems of indexes without Temporal, so that an answer is quick.
 *
 *   worker-ask.ts --project <folder> <order>   prints lines of domain/ask-messages.ts
 */

import { parseArgs } from 'node:util';
import { expectValid, loadBase } from './config/load.ts';
import { resolveReaderUrl } from './config/reader-url.ts';
import {
  inProjectFile,
  resolveReferences,
  resolveText,
  type SecretAccess,
  secretsOf,
} from './config/secrets.ts';
import type { AskLine, AskOrder, Source, ToldChange, ToldMember } from './domain/ask-messages.ts';
import { RetlError } from './domain/errors.ts';
import type { FoundChange, FoundMember, Search } from './domain/found.ts';
import { searchedText } from './domain/identity-text.ts';
import { sha256 } from './domain/ids.ts';
import type { IndexSettings } from './domain/settings.ts';
import { engineDefinition, MEMBERSHIP_SEARCH } from './indexing/engine/form.ts';
import { engineSearchReader } from './indexing/engine/reader.ts';
import { membershipHistory } from './indexing/postgres/history.ts';
import { definitionOf, quoted } from './indexing/postgres/indexer.ts';
import { postgresHistoryReader, postgresSearchReader } from './indexing/postgres/reader.ts';
import { membershipSearch } from './indexing/postgres/search.ts';
import type { Answer, HistoryReader, IndexReader, SearchReader } from './indexing/reader.ts';
import { type Asked, asked } from './indexing/usable.ts';
import { JournalError } from './journal/errors.ts';
import { findMembers } from './journal/find-members.ts';
import { requireSchema } from './journal/migrate.ts';
import { openJournal } from './journal/pool.ts';
import type { JournalPool } from './journal/runs.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { project: { type: 'string', default: '.' } },
});

function say(line: AskLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Indexes of one kind, in order of their names, each opened when the ones before it would not do. */
interface Indexes {
  readonly journal: JournalPool;
  readonly settings: readonly IndexSettings[];
  open(index: IndexSettings): IndexReader;
  /** Those that were away: to ask each again for each identity would be to wait as often. */
  readonly away: Set<string>;
}

async function main(order: AskOrder): Promise<void> {
  const base = expectValid(await loadBase(values.project));
  const secrets = secretsOf(values.project);
  const url = resolveReaderUrl(base.journal, secrets);
  const journal = openJournal({ url, max: 2, applicationName: 'retl find' });
  try {
    await requireSchema(journal);
    const open = (index: IndexSettings) => openReader(index, secrets, url);
    const indexes = { journal, settings: base.indexes, open, away: new Set<string>() };
    await (order.kind === 'find' ? find(indexes, order) : recall(indexes, order));
  } finally {
    await journal.end();
  }
}

/** @throws RetlError `config.secret`: this machine has no way to it */
function openReader(
  { name, kind, schema, url, engine }: IndexSettings,
  { env, readFile }: SecretAccess,
  journalUrl: string,
): IndexReader {
  if (engine !== null) {
    const options = resolveReferences(engine.options, env, readFile, inProjectFile(`indexes.${name}`));
    const definition = engineDefinition(name, MEMBERSHIP_SEARCH);
    return engineSearchReader({ definition, system: engine.system, options });
  }
  const own = inProjectFile(`indexes.${name}.url`);
  const place = {
    url: url === null ? journalUrl : resolveText(url, env, readFile, own),
    schema: quoted(schema),
  };
  return kind === 'membership-search'
    ? postgresSearchReader({ ...place, definition: definitionOf(name, membershipSearch) })
    : postgresHistoryReader({ ...place, definition: definitionOf(name, membershipHistory) });
}

type Found<T> = Extract<Asked<T>, { readonly kind: 'answered' }> & { readonly source: Source };

/** What the first index of the kind says that will do; why those before it would not is told. `null`: none will. */
async function firstOf<T>(
  { journal, settings, open, away }: Indexes,
  kind: IndexSettings['kind'],
  maxLag: number,
  ask: (reader: IndexReader) => Promise<Answer<T>>,
): Promise<Found<T> | null> {
  for (const one of settings.filter((index) => index.kind === kind && !away.has(index.name))) {
    const answer = await asked(journal, maxLag, async () => {
      const reader = open(one);
      return ask(reader).finally(() => reader.close());
    });
    if (answer.kind === 'answered') return { ...answer, source: sourceOf(one.name, answer) };
    say({ kind: 'passed-over', index: one.name, code: answer.code });
    if (answer.code === 'index.unavailable') away.add(one.name);
  }
  return null;
}

function sourceOf(index: string | null, { position, lag }: Pick<Found<never>, 'position' | 'lag'>): Source {
  return { index, position: `${position}`, lag: { positions: `${lag.positions}`, ms: lag.ms } };
}

async function find(indexes: Indexes, order: Extract<AskOrder, { kind: 'find' }>): Promise<void> {
  const { hashes, text, match, mirrors, limit, maxLag } = order;
  const search: Search = {
    hashes: hashes.map(sha256),
    text: text === null ? null : searchedText(text, match),
    mirrors,
    limit,
  };
  const answer = await firstOf(indexes, 'membership-search', maxLag, (reader) =>
    searching(reader).search(search),
  );
  const told = answer ?? (await fromJournal(indexes.journal, search));
  if (told.kind === 'too-long') return say(told);
  const { found, more, source } = told;
  for (const member of found) say({ kind: 'member', member: toldMember(member) });
  say({ kind: 'found', source, more });
}

async function fromJournal(journal: JournalPool, search: Search) {
  const answer = await findMembers(journal, search);
  if (answer.kind === 'too-long') return answer;
  const { position, ...rest } = answer;
  return { ...rest, source: sourceOf(null, { position, lag: { positions: 0n, ms: 0 } }) };
}

async function recall(indexes: Indexes, order: Extract<AskOrder, { kind: 'recall' }>): Promise<void> {
  const { mirror, limit, maxLag } = order;
  const target = BigInt(order.target);
  for (const identityHash of order.hashes.map(sha256)) {
    const search: Search = { hashes: [identityHash], text: null, mirrors: [mirror], limit: TARGETS };
    const held = await firstOf(indexes, 'membership-search', maxLag, (reader) =>
      searching(reader).search(search),
    );
    if (held !== null) {
      const member = held.found.find((one) => one.target === target);
      const since =
        member === undefined ? null : { position: `${member.since}`, at: member.sinceAt.toISOString() };
      say({ kind: 'since', identityHash, source: held.source, since });
    }
    const history = await firstOf(indexes, 'membership-history', maxLag, (reader) =>
      remembering(reader).changes(target, identityHash, limit),
    );
    if (history === null) continue;
    const { source, more } = history;
    say({ kind: 'changes', identityHash, source, changes: history.found.map(toldChange), more });
  }
}

/** Of one mirror, at most; former ones are among them. */
const TARGETS = 1_000;

function searching(reader: IndexReader): SearchReader {
  if (reader.kind !== 'membership-search') throw new Error('not an index to search');
  return reader;
}

function remembering(reader: IndexReader): HistoryReader {
  if (reader.kind !== 'membership-history') throw new Error('not an index of changes');
  return reader;
}

function toldMember(member: FoundMember): ToldMember {
  const { mirror, identityHash, identity, payloadHash } = member;
  return {
    ...{ mirror, target: `${member.target}`, identityHash, identity, payloadHash },
    runId: `${member.run}`,
    position: `${member.position}`,
    acceptedAt: member.acceptedAt.toISOString(),
    since: `${member.since}`,
    sinceAt: member.sinceAt.toISOString(),
  };
}

function toldChange({ action, position, at, run, payloadHash }: FoundChange): ToldChange {
  return { action, position: `${position}`, at: at.toISOString(), runId: `${run}`, payloadHash };
}

/** Of the command line, which has checked it. */
function orderIn(text: string): AskOrder {
  return JSON.parse(text) as AskOrder;
}

try {
  await main(orderIn(positionals[0] ?? ''));
} catch (error) {
  process.exitCode = 1;
  if (error instanceof RetlError) say({ kind: 'refused', code: error.code, details: error.details });
  else if (error instanceof JournalError && error.kind === 'unavailable')
    say({ kind: 'refused', code: 'journal.unavailable', details: {} });
  // A server's own words may hold values.
  else process.stderr.write(`nothing was found out (${error instanceof Error ? error.name : 'error'})\n`);
}
