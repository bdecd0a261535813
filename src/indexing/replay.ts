/**
 * Replay (design.md section 7): an index goes on from its own newest checkpoint, validated, with the position after it, in
 * pages; a checkpoint follows each committed page: the artifact first, then the index's rows and its own checkpoint in one
 * transaction, then the journal's registry. Whoever dies between two of these leaves something that the next one mends.
 */

import type { CheckpointMark, Refusal } from '../domain/checkpoint-validation.ts';
import { stop } from '../domain/checkpoint-validation.ts';
import { type ErrorCode, RetlError } from '../domain/errors.ts';
import { type BuildId, type LogPosition, logPosition, type Sha256, sha256FromHex } from '../domain/ids.ts';
import type { ArtifactStore } from '../journal/artifact-store.ts';
import { putCheckpoint } from '../journal/checkpoints.ts';
import { entryAt, logLag } from '../journal/log-reader.ts';
import type { Queryable } from '../journal/pool.ts';
import { refusalOf, storeCheckpoint } from './checkpoints.ts';
import { lagsFrom } from './index-status.ts';
import type { Batch, Indexer, OwnBuild } from './indexer.ts';
import { alignHold } from './log-hold.ts';
import { LogSource } from './log-source.ts';
import { newBuild } from './new-build.ts';
import { refuseBuild } from './resume.ts';

export interface ReplayDeps {
  readonly journal: Queryable;
  readonly artifacts: ArtifactStore;
  /** Which instance of the indexer this is; no secret, no value. */
  readonly builder: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Hears what does not stop the work. */
  readonly warn: (message: string, fields: { readonly [key: string]: string }) => void;
  /** Effects of a page, where not those of {@link LogSource}. */
  readonly effects?: number;
}

export interface Progress {
  readonly build: BuildId;
  readonly state: OwnBuild['state'];
  /** `null`: the log snapshot is being read. */
  readonly position: LogPosition | null;
  /** What its lag is counted from; never `null`. */
  readonly lagsFrom: LogPosition;
  readonly rows: bigint;
}

export type Followed =
  /** `more`: it was told to stop before the end. `frozen`: a rollback, which has got to its position. */
  ({ readonly kind: 'caught-up' | 'more' | 'frozen' } & Progress) | Refusal;

/**
 * Has an index follow the log until it has caught up or `stopped` says so, which is asked after each page.
 * @throws RetlError, JournalError
 */
export async function follow(
  deps: ReplayDeps,
  indexer: Indexer,
  stopped: () => boolean = () => false,
): Promise<Followed> {
  await indexer.prepare('follow');
  const begun = await buildToWorkOn(deps, indexer);
  if (begun.kind === 'refused') return begun;
  await alignHold(deps.journal, indexer);
  const replay = new Replay(deps, indexer, begun.build);
  const ended = await besideLive(deps, indexer, replay, stopped);
  if (ended === 'more' || ended === 'compacted') return { kind: 'more', ...progressOf(replay.build) };
  if (typeof ended !== 'string') return ended;
  if (replay.build.state === 'building') {
    const promoted = await indexer.promote(replay.build);
    if (promoted.kind === 'raced') return stop('index.build-raced', { index: indexer.definition.name });
    replay.build = promoted.build;
  }
  return { kind: replay.build.goal === null ? 'caught-up' : 'frozen', ...progressOf(replay.build) };
}

/** How long the new build has its way before the live one, which readers see meanwhile, follows the log again. */
const TURN_MS = 1_000;

/** Runs a build; while it is a new one, the live one has its turns. */
async function besideLive(
  deps: ReplayDeps,
  indexer: Indexer,
  replay: Replay,
  stopped: () => boolean,
): Promise<Ended> {
  let live = replay.build.state === 'live' ? null : await liveBeside(deps, indexer);
  while (live !== null) {
    const turn = new Turn(stopped);
    if (!(await liveTurn(deps, live, turn))) live = null;
    turn.begin();
    const ended = await replay.run(turn.isOver);
    if (ended !== 'more' || turn.isStopped) return ended;
  }
  return replay.run(stopped);
}

/**
 * Whether the live build can have another turn. What it may not go on from, or breaks at, its table lost, say, is no reason
 * for the new build to wait: that one takes its place.
 */
async function liveTurn(deps: ReplayDeps, live: Replay, turn: Turn): Promise<boolean> {
  try {
    const ended = await live.run(turn.isOver);
    if (typeof ended !== 'string') warnOfLive(deps, live.build, ended.code);
    return ended === 'end' || ended === 'more';
  } catch (error) {
    if (!(error instanceof RetlError)) throw error;
    warnOfLive(deps, live.build, error.code);
    return false;
  }
}

/** What readers see stays as it is until the new build takes its place. */
function warnOfLive({ warn }: ReplayDeps, { definition, build }: OwnBuild, code: ErrorCode): void {
  const fields = { index: definition.name, build: `${build}`, code };
  warn('the live build cannot follow; the new one goes on', fields);
}

/** `null`: there is none, or it cannot follow: it was rolled back, is of another schema version, or is refused. */
async function liveBeside(deps: ReplayDeps, indexer: Indexer): Promise<Replay | null> {
  const live = (await indexer.builds()).find(({ state }) => state === 'live');
  if (live === undefined || live.mark === null || live.goal !== null) return null;
  const refusal = await mayGoOn(deps, indexer, live);
  if (refusal === null) return new Replay(deps, indexer, live);
  warnOfLive(deps, live, refusal.code);
  return null;
}

/** Ends after a while, or when the caller says stop. */
class Turn {
  isStopped = false;
  #until = performance.now() + TURN_MS;

  constructor(private readonly stopped: () => boolean) {}

  readonly isOver = (): boolean => {
    this.isStopped ||= this.stopped();
    return this.isStopped || performance.now() > this.#until;
  };

  begin(): void {
    this.#until = performance.now() + TURN_MS;
  }
}

export function progressOf(own: OwnBuild): Progress {
  const { build, state, mark, rows } = own;
  return { build, state, position: mark?.position ?? null, lagsFrom: lagsFrom(own), rows };
}

type Chosen = { readonly kind: 'chosen'; readonly build: OwnBuild } | Refusal;

/** The build under way, else the live one, else a new one; what cannot be gone on from in good order is begun anew. */
async function buildToWorkOn(deps: ReplayDeps, indexer: Indexer): Promise<Chosen> {
  const builds = await indexer.builds();
  const found = builds.find(({ state }) => state === 'building') ?? builds[0];
  if (found === undefined) return newBuild(deps, indexer, null);
  const refusal = await mayGoOn(deps, indexer, found);
  if (refusal === null || (refusal.code === 'index.past-compaction' && isThere(found)))
    return { kind: 'chosen', build: found };
  if (refusal.remedy === 'stop') return refusal;
  if (found.state === 'building') await indexer.retire(found.build);
  return newBuild(deps, indexer, found.goal);
}

/** A rollback that has got to its position needs no more of the log. */
function isThere({ goal, mark }: OwnBuild): boolean {
  return goal !== null && mark !== null && mark.position >= goal;
}

/** `null`: it may. */
async function mayGoOn(deps: ReplayDeps, indexer: Indexer, build: OwnBuild): Promise<Refusal | null> {
  const refusal = await refuseBuild(deps, indexer, build);
  if (refusal !== null || build.mark === null) return refusal;
  // The registry may not have heard of it: its builder died in between. It is a repetition otherwise.
  return register(deps, build, build.mark);
}

async function register(deps: ReplayDeps, build: OwnBuild, mark: CheckpointMark): Promise<Refusal | null> {
  const { position, reference, logId, entryHash } = mark;
  const draft = { build: build.build, position, reference, previous: build.previous, logId, entryHash };
  return refusalOf(await putCheckpoint(deps.journal, draft));
}

const GENESIS = sha256FromHex('0'.repeat(64));

/**
 * How a turn of a build ended. `compacted`: the log, or its snapshot, was compacted while it was being read; the next call
 * finds that out in good order, and begins anew.
 */
type Ended = 'end' | 'more' | 'compacted' | Refusal;

/** One build on its way. */
class Replay {
  readonly #source: LogSource;
  #next: ReturnType<LogSource['entries']> | null = null;

  constructor(
    private readonly deps: ReplayDeps,
    private readonly indexer: Indexer,
    public build: OwnBuild,
  ) {
    this.#source = new LogSource(deps.journal, deps.effects);
  }

  async run(stopped: () => boolean): Promise<Ended> {
    if (this.build.mark === null) {
      const loaded = await this.#load(stopped);
      if (loaded !== null) return loaded;
    }
    return this.#follow(stopped);
  }

  /** Reads the log snapshot, and makes the first checkpoint. `null`: done. */
  async #load(stopped: () => boolean): Promise<Ended | null> {
    const { snapshot } = this.build;
    while (snapshot !== null) {
      if (stopped()) return 'more';
      const page = await this.#source.members(snapshot.id, this.build.loaded);
      if (page.kind === 'end') break;
      if (page.kind === 'compacted') return 'compacted';
      const raced = await this.#apply(page, null);
      if (raced !== null) return raced;
    }
    const position = snapshot?.boundary ?? logPosition(0);
    const entryHash = await this.#hashAt(position);
    return entryHash === null
      ? stop('index.log-diverged', { position: `${position}` })
      : this.#apply({ kind: 'begin' }, { position, entryHash });
  }

  /** Writes a page at least, however long reading it takes: whoever has short turns gets on as well. */
  async #follow(stopped: () => boolean): Promise<Ended> {
    for (;;) {
      const page = await (this.#next ?? this.#read());
      this.#next = null;
      if (page.kind === 'end') return 'end';
      if (page.kind === 'compacted') return 'compacted';
      const last = page.entries.at(-1)?.entry;
      if (last === undefined) return 'end';
      // The next page is read while this one is written, and kept for the next turn.
      this.#next = this.#read(last.position);
      this.#next.catch(() => {});
      const refused = await this.#apply(page, last);
      if (refused !== null) return refused;
      if (stopped()) return 'more';
    }
  }

  #read(after = this.build.mark?.position ?? logPosition(0)) {
    return this.#source.entries(after, this.build.goal);
  }

  /** Takes a batch in, with a checkpoint at its end; the first and last of three steps are those around it. */
  async #apply(batch: Batch, at: Place | null): Promise<Refusal | null> {
    const applied = await this.indexer.apply(
      this.build,
      batch,
      at === null ? null : (rows) => this.#mark(at, rows),
    );
    if (applied.kind === 'raced') return stop('index.build-raced', { build: `${this.build.build}` });
    this.build = applied.build;
    return at === null || this.build.mark === null ? null : register(this.deps, this.build, this.build.mark);
  }

  async #mark({ position, entryHash }: Place, rows: bigint): Promise<CheckpointMark> {
    const { journal, artifacts, builder, now } = this.deps;
    const { definition, snapshot, logId } = this.build;
    const { ms } = await logLag(journal, position);
    const stored = await storeCheckpoint(artifacts, {
      projectionName: definition.name,
      projectionSchemaVersion: definition.schemaVersion,
      aslSnapshotId: snapshot?.id ?? null,
      aslLogPosition: position,
      createdAt: BigInt(now()),
      builderId: builder,
      artifactCount: rows,
      edgeCount: null,
      errorCount: 0n,
      lagMillis: BigInt(Math.round(ms)),
      note: null,
    });
    if (stored.kind === 'refused') throw new RetlError(stored.code, stored.details);
    if (stored.kind === 'no-bytes') throw new RetlError('index.misconfigured', { rule: stored.fault.reason });
    const { reference } = stored;
    return { reference, position, entryHash, logId, snapshot, fingerprint: definition.fingerprint };
  }

  async #hashAt(position: LogPosition): Promise<Sha256 | null> {
    if (position === 0n) return GENESIS;
    return (await entryAt(this.deps.journal, position))?.entryHash ?? null;
  }
}

interface Place {
  readonly position: LogPosition;
  readonly entryHash: Sha256;
}
