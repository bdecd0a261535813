/**
 * Indexes as the worker opens them, and what it does for `retl index` as a process of its own (`--index <verb> <name> …`): it
 * alone may load the systems that indexes live in. Findings are JSON lines.
 */

import { hostname } from 'node:os';
import type { IndexDependencies } from './activities/index-follow.ts';
import { expectValid, loadBase } from './config/load.ts';
import { inProjectFile, resolveReferences, resolveText, secretsOf } from './config/secrets.ts';
import { checkpointJson } from './domain/checkpoint.ts';
import { CHECKPOINT_VERSION } from './domain/checkpoint-codec.ts';
import { type Refusal, stop } from './domain/checkpoint-validation.ts';
import { RetlError } from './domain/errors.ts';
import { type ArtifactReference, sha256 } from './domain/ids.ts';
import type { IndexLine } from './domain/index-lines.ts';
import type { IndexSettings } from './domain/settings.ts';
import { markOf, readCheckpoint } from './indexing/checkpoints.ts';
import { MEMBERSHIP_SEARCH } from './indexing/engine/form.ts';
import { engineIndexer } from './indexing/engine/indexer.ts';
import { indexStatus } from './indexing/index-status.ts';
import type { Indexer } from './indexing/indexer.ts';
import { membershipHistory } from './indexing/postgres/history.ts';
import { postgresIndexer } from './indexing/postgres/indexer.ts';
import { membershipSearch } from './indexing/postgres/search.ts';
import { rebuild, rollback } from './indexing/rebuild.ts';
import { follow, type ReplayDeps } from './indexing/replay.ts';
import { verifyCheckpoints } from './indexing/verify-checkpoints.ts';
import { verifyIndex } from './indexing/verify-index.ts';
import { buildOf, everyBuild, everyCheckpoint, recordsOf } from './journal/checkpoints.ts';
import { JournalError } from './journal/errors.ts';
import type { JournalPool } from './journal/runs.ts';
import { projectArtifacts } from './worker-artifacts.ts';
import { forgotten } from './worker-forget.ts';
import { withJournal } from './worker-journal.ts';
import type { WorkerSetup } from './worker-setup.ts';

const KINDS = { 'membership-search': membershipSearch, 'membership-history': membershipHistory } as const;

/** What the activities of the workflow `index` are made from. */
export function indexDependencies(setup: WorkerSetup, journal: JournalPool): IndexDependencies {
  const settings = async () => expectValid(await loadBase(setup.projectDir));
  return {
    replay: replayDeps(setup, journal),
    logger: setup.logger,
    async open(name) {
      const { indexes, journal: kept } = await settings();
      const found = indexes.find((index) => index.name === name);
      if (found === undefined) throw new RetlError('index.unknown', { index: name });
      return openIndexer(setup.projectDir, found, kept.url);
    },
    names: async () => (await settings()).indexes.map(({ name }) => name),
  };
}

function replayDeps({ projectDir, logger }: WorkerSetup, journal: JournalPool): ReplayDeps {
  return {
    journal,
    artifacts: projectArtifacts(projectDir, journal),
    builder: `${hostname()}:${process.pid}`,
    now: () => Date.now(),
    // On stderr, which `retl index` leaves as it is.
    warn: (message, fields) => logger.warn(message, fields),
  };
}

/** Connects when it is first asked something. @throws RetlError `config.secret`, `index.misconfigured` */
export async function openIndexer(
  projectDir: string,
  index: IndexSettings,
  journalUrl: string,
): Promise<Indexer> {
  const { env, readFile } = secretsOf(projectDir);
  const { name, schema, holdsLog, engine } = index;
  if (engine === null) {
    const path = index.url === null ? 'journal.url' : `indexes.${name}.url`;
    const url = resolveText(index.url ?? journalUrl, env, readFile, inProjectFile(path));
    return postgresIndexer({ name, kind: KINDS[index.kind], url, schema, holdsLog });
  }
  const { system } = engine;
  const options = resolveReferences(engine.options, env, readFile, inProjectFile(`indexes.${name}`));
  return engineIndexer({ name, system, form: MEMBERSHIP_SEARCH, options, holdsLog });
}

type Say = (line: IndexLine) => void;

/** @returns whether the verb was done, and found nothing wrong */
export async function indexVerb(
  setup: WorkerSetup,
  [verb, name = '', argument = '']: readonly string[],
): Promise<boolean> {
  let good = true;
  process.stdout.on('error', endWithReader);
  const say: Say = (line) => {
    good &&= line.kind !== 'refused';
    process.stdout.write(`${JSON.stringify(line, plain)}\n`);
  };
  try {
    const base = expectValid(await loadBase(setup.projectDir));
    const work = async (journal: JournalPool, journalUrl: string): Promise<void> => {
      const deps = indexDependencies(setup, journal);
      const { projectDir } = setup;
      const place = { projectDir, retired: base.retiredIndexes, journalUrl, schema: argument };
      if (verb === 'show') say(await shown(deps.replay, name));
      else if (verb === 'forget') say(await forgotten(journal, { ...place, name }));
      else
        await ofEach(name === '' ? await deps.names() : [name], say, async (index, sayOf) => {
          const indexer = await deps.open(index);
          const task = { verb, argument, deps: deps.replay, indexer, say: sayOf };
          await perform(task).finally(() => indexer.close());
        });
    };
    await withJournal(setup.projectDir, base.journal, work, 4);
  } catch (error) {
    say(toldError(error));
  }
  return good;
}

/** Does it for each at once: one that is away hides none of the others. A refusal names its index. */
async function ofEach(
  names: readonly string[],
  say: Say,
  work: (index: string, say: Say) => Promise<void>,
): Promise<void> {
  const done = await Promise.allSettled(
    names.map(async (index) => {
      const sayOf: Say = (line) =>
        say(line.kind === 'refused' ? { ...line, details: { index, ...line.details } } : line);
      await work(index, sayOf).catch((error) => sayOf(toldError(error)));
    }),
  );
  for (const one of done) if (one.status === 'rejected') throw one.reason;
}

/** Nobody reads any more: what is left undone goes on at the next call. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit(1);
}

function toldError(error: unknown): IndexLine {
  if (error instanceof RetlError) return { kind: 'refused', code: error.code, details: error.details };
  if (error instanceof JournalError && error.kind === 'unavailable')
    return { kind: 'refused', code: 'journal.unavailable', details: {} };
  throw error;
}

interface Task {
  readonly verb: string | undefined;
  readonly argument: string;
  readonly deps: ReplayDeps;
  readonly indexer: Indexer;
  readonly say: Say;
}

async function perform(task: Task): Promise<void> {
  const { verb, argument, deps, indexer, say } = task;
  const index = indexer.definition.name;
  switch (verb) {
    case 'status':
      return say({ kind: 'status', ...(await indexStatus(deps.journal, indexer)) });
    case 'follow': {
      let followed = await follow(deps, indexer);
      while (followed.kind === 'more') followed = await follow(deps, indexer);
      if (followed.kind === 'refused') return say(told(followed));
      const { kind: end, build, position, rows } = followed;
      return say({ kind: 'followed', index, end, build, position, rows });
    }
    case 'rebuild':
    case 'rollback': {
      const begun =
        verb === 'rebuild'
          ? await rebuild(deps, indexer)
          : await rollback(deps, indexer, referenceIn(argument));
      const { goal, build } = begun.kind === 'refused' ? { goal: null, build: 0n } : begun.build;
      return say(begun.kind === 'refused' ? told(begun) : { kind: 'begun', index, build, goal });
    }
    case 'verify':
      return verify(task);
    case 'checkpoints':
      return checkpoints(task);
    default:
      throw new Error('no such verb');
  }
}

function told({ code, details }: Refusal): IndexLine {
  return { kind: 'refused', code, details };
}

function referenceIn(text: string): ArtifactReference {
  try {
    return sha256(text);
  } catch {
    throw new RetlError('index.unknown-checkpoint', { rule: 'not-a-reference' });
  }
}

async function verify({ deps, indexer, say }: Task): Promise<void> {
  const { name: index } = indexer.definition;
  const audit = await verifyCheckpoints(deps.journal, deps.artifacts, index);
  const faults = audit.faults.map(({ position, reference, code }) => ({ position, reference, code }));
  // What the audit has found is told whether rows can be compared or not.
  say({ kind: 'audited', index, checkpoints: audit.checked, faults });
  const verified = await verifyIndex(deps, indexer);
  if (verified.kind === 'refused') return say(told(verified));
  const { position, rows, oneByOne, boundary, missing, unexpected, counted, artifactCount, astray } =
    verified;
  const compared = { position, rows, oneByOne, boundary, missing, unexpected };
  say({ kind: 'verified', index, ...compared, counted, artifactCount, astray });
}

async function checkpoints({ deps, indexer, say }: Task): Promise<void> {
  const { name: index } = indexer.definition;
  for await (const { build, definition } of everyBuild(deps.journal, index))
    for await (const { position, reference, recordedAt } of everyCheckpoint(deps.journal, build))
      say({
        kind: 'checkpoint',
        index,
        build,
        schemaVersion: definition.schemaVersion,
        ...{ position, reference, recordedAt: recordedAt.toISOString() },
      });
}

async function shown({ journal, artifacts }: ReplayDeps, written: string): Promise<IndexLine> {
  const reference = referenceIn(written);
  const [record] = await recordsOf(journal, reference);
  const build = record === undefined ? null : await buildOf(journal, record.build);
  if (record === undefined || build === null) return told(stop('index.unknown-checkpoint', { reference }));
  const read = await readCheckpoint(artifacts, markOf(build, record));
  if (read.kind === 'refused') return told(read);
  const { decoded } = read.recorded;
  return decoded.kind === 'refused'
    ? told(stop('index.checkpoint-damaged', { rule: decoded.fault.reason }))
    : { kind: 'shown', reference, checkpoint: checkpointJson(decoded.checkpoint, CHECKPOINT_VERSION) };
}

/** A u64 as decimal text. */
function plain(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
