/**
 * Asks an index in a search engine. What the engine finds is held against the question once more, so that the answer is what the
 * journal would give. Build and rows are not read as of one moment there: they are looked at again where the build has
 * moved on meanwhile, and where that does not end, rows may be newer than the position that is told, never older.
 */

import { z } from 'zod';
import type { IndexDefinition } from '../../domain/checkpoint-validation.ts';
import { identityHas, type SearchedText } from '../../domain/identity-text.ts';
import { hexOf, logPosition, sha256FromHex } from '../../domain/ids.ts';
import type { EngineName, Options } from '../../domain/settings.ts';
import type { Answer, IndexedMember, Search, SearchReader } from '../reader.ts';
import { ask, type Engine, INDEX_GONE, READER_PATIENCE, refusal, unavailable } from './ask.ts';
import { type KeptBuild, readBuild } from './build-state.ts';
import { openEngine } from './client.ts';
import { type Place, readDirectory } from './directory.ts';
import { HELD } from './form.ts';
import { engineOptions } from './options.ts';

export interface EngineReaderOptions {
  /** Of this release; its name is the index's. */
  readonly definition: IndexDefinition;
  readonly system: EngineName;
  /** As in retl.yaml, references resolved. */
  readonly options: Options;
}

/** Milliseconds for one request: whoever waits is better served by the journal then. */
const LONGEST_MS = 5_000;

/** Connects when it is first asked something. */
export function engineSearchReader({ definition, system, options }: EngineReaderOptions): SearchReader {
  let opened: Promise<{ readonly engine: Engine; readonly place: Place }> | null = null;
  const open = async () => {
    const access = engineOptions(system, options);
    const timeout_ms = Math.min(access.timeout_ms, LONGEST_MS);
    const engine = { client: await openEngine(system, { ...access, timeout_ms }), patience: READER_PATIENCE };
    const { prefix, replicas } = access;
    return { engine, place: { prefix, replicas, name: definition.name } };
  };
  return {
    kind: 'membership-search',
    definition,
    async search(search) {
      opened ??= open();
      const { engine, place } = await opened;
      return answer(engine, place, definition, search);
    },
    async close() {
      await opened?.then(
        ({ engine }) => engine.client.close(),
        () => undefined,
      );
    },
  };
}

const LOOKS = 3;

async function answer(
  engine: Engine,
  place: Place,
  definition: IndexDefinition,
  search: Search,
): Promise<Answer<IndexedMember>> {
  let build = await liveBuild(engine, place);
  for (let looked = 1; ; looked += 1) {
    if (build === null) return { kind: 'not-built' };
    const { schemaVersion, fingerprint } = build.definition;
    if (schemaVersion !== definition.schemaVersion || fingerprint !== definition.fingerprint)
      return { kind: 'other-version' };
    const found = await membersOf(engine, build.engineIndex, search);
    const after = await liveBuild(engine, place);
    const isStill = after?.engineIndex === build.engineIndex && after.revision.seqNo === build.revision.seqNo;
    if (found !== null && ((isStill && build.ahead === null) || looked >= LOOKS)) {
      const { limit } = search;
      return { kind: 'answered', build, found: found.slice(0, limit), more: found.length > limit };
    }
    if (found === null && looked >= LOOKS) throw unavailable(engine.client.system, INDEX_GONE);
    build = after;
  }
}

async function liveBuild(engine: Engine, place: Place): Promise<KeptBuild | null> {
  const { live } = await readDirectory(engine, place);
  return live === null ? null : readBuild(engine, live, 'live');
}

const PAGE = 500;

const hit = z.object({
  sort: z.array(z.union([z.string(), z.number()])),
  _source: z.object({
    mirror: z.string(),
    identity: z.string(),
    since_at: z.string(),
    accepted_at: z.string(),
    run_id: z.string(),
    since: z.string(),
    position: z.string(),
    target_id: z.string(),
    identity_hash: z.string(),
    payload_hash: z.string(),
  }),
});

const page = z.object({
  timed_out: z.boolean(),
  _shards: z.object({ failed: z.number() }),
  hits: z.object({ hits: z.array(hit) }),
});

/** One more than the limit, where there are more. `null`: the build is gone, so that another one is live by now. */
async function membersOf(
  engine: Engine,
  index: string,
  search: Search,
): Promise<readonly IndexedMember[] | null> {
  const { hashes, text, limit } = search;
  const found: IndexedMember[] = [];
  let after: readonly (string | number)[] | null = null;
  for (;;) {
    const hits: readonly z.infer<typeof hit>[] | null = await pageOf(engine, index, search, after);
    if (hits === null) return null;
    for (const { _source } of hits) {
      const member = memberOf(_source);
      const { identityHash, identity } = member;
      if (hashes.includes(identityHash) || (text !== null && identityHas(identity, text))) found.push(member);
    }
    after = hits.at(-1)?.sort ?? null;
    if (after === null || found.length > limit) return found;
  }
}

async function pageOf(
  engine: Engine,
  index: string,
  search: Search,
  after: readonly (string | number)[] | null,
): Promise<z.infer<typeof hit>[] | null> {
  const body = JSON.stringify({
    query: queryOf(search),
    sort: [{ identity_hash: 'asc' }, { target_id: 'asc' }],
    size: Math.min(PAGE, search.limit + 1),
    ...(after === null ? {} : { search_after: after }),
  });
  const { status, body: said } = await ask(engine, { method: 'POST', path: `/${index}/_search`, body });
  if (status === 404) return null;
  const read = page.safeParse(said);
  if (status !== 200 || !read.success) throw refusal(engine, status, said);
  // Those that a shard does not tell would be taken for nobody.
  if (read.data.timed_out || read.data._shards.failed > 0)
    throw unavailable(engine.client.system, 'shards-failed');
  return read.data.hits.hits;
}

function queryOf({ hashes, text, mirrors }: Search): object {
  const ways = [{ terms: { identity_hash: hashes.map(hexOf) } }, ...(text === null ? [] : waysOf(text))];
  const filter = [HELD, ...(mirrors === null ? [] : [{ terms: { mirror: mirrors } }])];
  return { bool: { filter: [...filter, { bool: { should: ways, minimum_should_match: 1 } }] } };
}

/** A pattern is compiled before it is looked for; what a longer one goes on with is compared when it is found. */
const LONGEST_PATTERN = 100;

function waysOf({ folded, match }: SearchedText): readonly object[] {
  const part = [...folded]
    .slice(0, LONGEST_PATTERN)
    .join('')
    .replaceAll(/[\\*?]/g, '\\$&');
  const way =
    match === 'value'
      ? { term: { 'text.whole': folded } }
      : { wildcard: { 'text.whole': { value: `*${part}*` } } };
  // Values that are too long for the engine to keep whole.
  return [way, { term: { _ignored: 'text.whole' } }];
}

function memberOf(row: z.infer<typeof hit>['_source']): IndexedMember {
  return {
    mirror: row.mirror,
    target: BigInt(row.target_id),
    identityHash: sha256FromHex(row.identity_hash),
    identity: row.identity,
    payloadHash: sha256FromHex(row.payload_hash),
    run: BigInt(row.run_id),
    position: logPosition(BigInt(row.position)),
    acceptedAt: new Date(row.accepted_at),
    since: logPosition(BigInt(row.since)),
    sinceAt: new Date(row.since_at),
  };
}
