/**
 * Imports what a target holds from a file (design.md section 4, "Strategies": `tracked`). The destination is not called: of its
 * adapter only pure functions are used. Everything is one transaction of the journal; a process that dies has imported nothing.
 */

import type { BaselineSummary, BaselineWord } from '../domain/baseline.ts';
import { RetlError } from '../domain/errors.ts';
import { type BatchId, type Sequence, sequence } from '../domain/ids.ts';
import { batchId, largestPayloadAllowed } from '../domain/request.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import { acceptImport, type ImportedBatch, openImport } from '../journal/baseline.ts';
import { type CandidateSink, loadWithin } from '../journal/candidate.ts';
import { readOperationHashes } from '../journal/operations.ts';
import { type JournalClient, transaction } from '../journal/pool.ts';
import { loadRun, type RunRecord } from '../journal/run-record.ts';
import { type Attempt, type JournalPool, plan, seal } from '../journal/runs.ts';
import { sha256Hex } from '../planning/hash.ts';
import { type BaselineInput, readBaseline, summariseBaseline } from '../planning/read-baseline.ts';
import { baselineRefused } from './baseline-refusal.ts';
import { type BoundDestination, bindDestination, bindSource, memberForm, sha256Bytes } from './binding.ts';
import { operationIdIn } from './delivery/outgoing.ts';
import type { Dependencies } from './deps.ts';

/** Members of one entry of the log. */
const MEMBERS_AT_ONCE = 1_000;
/** The query is described, not read. */
const DESCRIBE_MS = 60_000;

export interface BaselineFile {
  readonly path: string;
  readonly isMapped: boolean;
}

export interface ImportOrder extends BaselineFile {
  /** Of the file that was looked at: another one is not imported. */
  readonly digest: string;
  readonly by: string;
  readonly because: string;
}

type Deps = Pick<Dependencies, 'sources' | 'destinations' | 'configuration'>;

/** What the file says, without looking at the journal. @throws RetlError */
export async function inspectBaseline(
  deps: Deps,
  settings: MirrorSettings,
  file: BaselineFile,
): Promise<BaselineSummary> {
  return summariseBaseline(inputOf(deps, settings, file, boundTo(deps, settings)));
}

/** Resolves to how many members are held from now on. @throws RetlError, JournalError: nothing was imported */
export async function importBaseline(
  deps: Deps,
  journal: JournalPool,
  settings: MirrorSettings,
  order: ImportOrder,
): Promise<number> {
  const destination = boundTo(deps, settings);
  const input = inputOf(deps, settings, order, destination);
  const { by, because, digest } = order;
  return importMembers(deps, journal, settings, destination, {
    word: { by, because },
    listed: false,
    async load(sink, drain) {
      const read = await readBaseline(input, sink, drain);
      if (read.digest !== digest) throw new RetlError('data.baseline-file', { rule: 'changed-since-shown' });
    },
    check: () => undefined,
  });
}

/** Where the members come from, and on whose word. */
export interface ImportedMembers {
  readonly word: BaselineWord;
  /** By the destination itself, and not by a person's file. */
  readonly listed: boolean;
  load(sink: CandidateSink, drain: () => Promise<void>): Promise<void>;
  /** Looks at what was sealed. @throws RetlError: nothing is imported */
  check(record: RunRecord): void;
}

/** All of it in one transaction. @throws RetlError, JournalError: nothing was imported; what `load` and `check` throw */
export async function importMembers(
  deps: Deps,
  journal: JournalPool,
  settings: MirrorSettings,
  destination: BoundDestination,
  members: ImportedMembers,
): Promise<number> {
  return transaction(journal, async (client) => {
    const attempt = await open(client, deps, settings, destination, members);
    await loadWithin(
      client,
      attempt,
      '[]',
      (sink) => members.load(sink, async () => (sink.full ? sink.drain() : undefined)),
      memberForm(destination),
    );
    const { upsert, remove } = largestPayloads(destination);
    const sealed = await seal(client, attempt, upsert, remove);
    // What was looked at has passed: the seal has the last word all the same.
    if (sealed.kind === 'invalid') {
      const code = members.listed ? 'data.baseline-listing' : 'data.baseline-file';
      throw new RetlError(code, { rule: sealed.code, count: sealed.count });
    }
    await plan(client, attempt);
    const record = await loadRun(client, attempt.run);
    members.check(record);
    // Read before the log's head is locked: nobody waits for a file's worth of hashing.
    await acceptImport(client, attempt, await batchesOf(client, record));
    return record.members;
  });
}

/** @throws RetlError `run.baseline-not-tracked`; those of {@link bindDestination} */
export function boundTo(deps: Deps, settings: MirrorSettings): BoundDestination {
  if (settings.baseline.kind !== 'tracked')
    throw new RetlError('run.baseline-not-tracked', { baseline: settings.baseline.kind });
  return bindDestination(deps, settings);
}

function inputOf(
  deps: Deps,
  settings: MirrorSettings,
  file: BaselineFile,
  destination: BoundDestination,
): BaselineInput {
  return {
    settings,
    ...file,
    describe: () => {
      const source = bindSource(deps, settings);
      const signal = AbortSignal.timeout(DESCRIBE_MS);
      return source.adapter.describe(source.connection, settings.source.query, signal);
    },
    projection: deps.configuration.projection,
    form: memberForm(destination),
    limits: largestPayloads(destination),
  };
}

/** Bytes of one stored payload, at most. */
export function largestPayloads({ adapter, options, limits }: BoundDestination): {
  readonly upsert: number;
  readonly remove: number;
} {
  const largest = (action: 'upsert' | 'remove') =>
    largestPayloadAllowed(adapter.frame(action, options), limits.bytes);
  return { upsert: largest('upsert'), remove: largest('remove') };
}

async function open(
  client: JournalClient,
  deps: Deps,
  settings: MirrorSettings,
  { targetKey, route, identityForm, limits }: BoundDestination,
  { word, listed }: ImportedMembers,
): Promise<Attempt> {
  const { mirror } = settings;
  const text = deps.configuration.text(settings);
  const opened = await openImport(client, {
    mirror,
    targetKey,
    route,
    identityForm,
    settings: text,
    settingsDigest: sha256Bytes(text),
    maxBatchRows: limits.rows,
    maxRequestBytes: limits.bytes,
    ...word,
    listed,
  });
  if (opened.kind === 'opened') return opened;
  throw baselineRefused(mirror, opened.code, opened.other);
}

/** The ids that requests of these members would have had: a reader of the log proves its effects by them. */
async function batchesOf(client: JournalClient, record: RunRecord): Promise<readonly ImportedBatch[]> {
  const { firstSequence, additionsEnd } = record;
  if (firstSequence === null || additionsEnd === null) throw new Error('the import is not planned');
  const batches: ImportedBatch[] = [];
  for (let from = firstSequence; from <= additionsEnd; from += BigInt(MEMBERS_AT_ONCE)) {
    const end = from + BigInt(MEMBERS_AT_ONCE) - 1n;
    const last = sequence(end < additionsEnd ? end : additionsEnd);
    batches.push({ id: await idOf(client, record, from, last), last });
  }
  return batches;
}

async function idOf(
  client: JournalClient,
  record: RunRecord,
  from: bigint,
  last: Sequence,
): Promise<BatchId> {
  const members = await readOperationHashes(client, record, from, last);
  const operations = members.map((planned) => operationIdIn(record, 'upsert', planned, 1));
  const mirror = `${record.logId}/${record.mirror}`;
  return batchId({ mirror, run: record.run, action: 'upsert', operations, ordinal: 1 }, sha256Hex);
}
