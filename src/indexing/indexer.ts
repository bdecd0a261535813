/**
 * The port of an index (design.md section 7): something derived from the log that can be built anew from it at any time. An
 * indexer keeps its own checkpoint where its rows are. In a database both change in one transaction; elsewhere the rows come
 * first, and writing them again changes nothing. Whoever dies has lost one batch.
 */

import type { CheckpointMark, IndexDefinition, SnapshotMark } from '../domain/checkpoint-validation.ts';
import type { ArtifactReference, BuildId, LogPosition, Sha256 } from '../domain/ids.ts';
import type { LogEntry } from '../journal/log.ts';
import { type EffectColumns, EntryEffects } from '../journal/log-effects.ts';
import type { SnapshotCursor, SnapshotMember } from '../journal/log-snapshot.ts';

/** One construction of the index, as the index itself keeps it: what the registry has not heard of is true all the same. */
export interface OwnBuild {
  readonly build: BuildId;
  /** `live`: the one that readers see; `building`: it takes the live one's place when it has caught up. */
  readonly state: 'live' | 'building';
  readonly definition: IndexDefinition;
  readonly logId: string;
  /** The log snapshot that it began with; `null`: it began with the log's first entry. */
  readonly snapshot: SnapshotMark | null;
  /** The position of a rollback, which it does not go past; `null`: it follows the log. */
  readonly goal: LogPosition | null;
  /** How far the log snapshot has been read, while there is no checkpoint; `null`: from its beginning. */
  readonly loaded: SnapshotCursor | null;
  /** Its newest checkpoint; `null`: the log snapshot is still being read. */
  readonly mark: CheckpointMark | null;
  /** The checkpoint before that. */
  readonly previous: ArtifactReference | null;
  /**
   * The furthest entry of which rows may stand there already, where they do not commit with a checkpoint: the log must have it,
   * or they are of another log. `null`: there are none past the checkpoint.
   */
  readonly ahead: LogPlace | null;
  /** How many rows it holds. */
  readonly rows: bigint;
}

export interface LogPlace {
  readonly position: LogPosition;
  readonly entryHash: Sha256;
}

export interface NewBuild {
  readonly build: BuildId;
  readonly definition: IndexDefinition;
  readonly logId: string;
  readonly snapshot: SnapshotMark | null;
  readonly goal: LogPosition | null;
}

/** Members of one target as of the log snapshot's boundary. */
export interface HeldMembers {
  readonly target: bigint;
  readonly mirror: string;
  readonly members: readonly SnapshotMember[];
}

/** An entry and the name of its mirror. */
export class NamedEntry extends EntryEffects {
  constructor(
    readonly mirror: string,
    entry: LogEntry,
    columns: EffectColumns,
  ) {
    super(entry, columns);
  }
}

export type Batch =
  /** A page of the log snapshot, in the order of the snapshot. */
  | { readonly kind: 'members'; readonly targets: readonly HeldMembers[]; readonly next: SnapshotCursor }
  /** The snapshot has been read whole, or there is none. */
  | { readonly kind: 'begin' }
  /** Whole entries, in order, without a gap. */
  | { readonly kind: 'entries'; readonly entries: readonly NamedEntry[] };

/** Puts the checkpoint's artifact, once it is known how many rows the index holds. @throws RetlError */
export type MakeMark = (rows: bigint) => Promise<CheckpointMark>;

/** What another builder has changed meanwhile is not overwritten. */
export type Applied = { readonly kind: 'applied'; readonly build: OwnBuild } | { readonly kind: 'raced' };

/** A rule of docs/indexes.md. Those of a view or an alias are mended when the index follows the log next, the others by a person. */
export type Astray =
  | 'view-gone'
  | 'view-changed'
  | 'alias-gone'
  | 'alias-changed'
  | 'table-gone'
  | 'name-taken'
  | 'other-owner';

/** Every method throws RetlError `index.unavailable` or `index.misconfigured` where the system is away or refuses. */
export interface Indexer {
  readonly definition: IndexDefinition;
  /** Whether a build needs all of the log, so that compaction is held back. */
  readonly holdsLog: boolean;
  /** Looks whether it could be built there, as far as that can be seen without changing anything. */
  look(): Promise<void>;
  /**
   * Creates what there must be before a build; harmless where it is there. To `follow` is to have readers see the live build
   * again, too, where somebody has changed what leads them to it; `anew`: a build is to be begun, whatever has become of that.
   */
  prepare(purpose: 'follow' | 'anew'): Promise<void>;
  /** What keeps readers from the live build; `null`: nothing does, or there is none. Changes nothing. */
  astray(): Promise<Astray | null>;
  /** The builds that are not retired: one of each state at most. */
  builds(): Promise<readonly OwnBuild[]>;
  /** `raced`: another build of this index has been begun. */
  begin(build: NewBuild): Promise<{ readonly kind: 'begun' | 'raced' }>;
  /**
   * Takes a batch in, with the checkpoint after it: in one transaction, or as one that may be repeated.
   * @param build as it was read or returned last: by it another builder's work is found
   * @param mark `null` only for a page of the log snapshot
   */
  apply(build: OwnBuild, batch: Batch, mark: MakeMark | null): Promise<Applied>;
  /** Puts a build that has caught up in the place of the live one, which is retired, in one step for readers. */
  promote(build: OwnBuild): Promise<Applied>;
  /** Gives a build up, and drops its rows. */
  retire(build: BuildId): Promise<void>;
  /**
   * Opens a second build beside the live one.
   * @param boundary of the log snapshot that it begins with; `null`: it begins with the log's first entry
   */
  scratch(live: OwnBuild, boundary: LogPosition | null): Promise<Scratch>;
  close(): Promise<void>;
}

/** What was taken away of an index. */
export interface Forgotten {
  /** Dropped with their rows. */
  readonly builds: number;
  /** Of the same name and place, from another journal's log: they stay. */
  readonly foreign: number;
}

/** A second build that nobody sees and that leaves nothing behind. */
export interface Scratch {
  apply(batch: Batch): Promise<void>;
  /** Compares with the live build, where that stands at the position that the scratch has been replayed to. */
  compare(position: LogPosition): Promise<Comparison>;
  close(): Promise<void>;
}

export type Comparison =
  | {
      readonly kind: 'compared';
      /** How many the index has. */
      readonly rows: bigint;
      /** How many of these were compared with a row that the log gives. */
      readonly oneByOne: bigint;
      /** Of rows up to there the log keeps only whom they leave as held, which was compared; `null`: it gives all. */
      readonly boundary: LogPosition | null;
      /** How many the build says it has, and the checkpoint it says that with. */
      readonly counted: bigint;
      readonly mark: CheckpointMark;
      /** Rows that the log gives and the index has not, or has otherwise. */
      readonly missing: bigint;
      /** Rows that the index has and the log does not give, or gives otherwise. */
      readonly unexpected: bigint;
    }
  /** The live build has gone on to there meanwhile. */
  | { readonly kind: 'moved'; readonly position: LogPosition }
  /** Another build is live by now. */
  | { readonly kind: 'replaced' };
