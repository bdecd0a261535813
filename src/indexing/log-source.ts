/** The log, and the log snapshot before it, as batches of an index: with values, and with the names of mirrors. */

import { RetlError } from '../domain/errors.ts';
import type { LogPosition, MirrorId } from '../domain/ids.ts';
import type { SnapshotId } from '../journal/compaction.ts';
import { MissingEffects, readLogPage } from '../journal/log-reader.ts';
import { readSnapshotPage, type SnapshotCursor } from '../journal/log-snapshot.ts';
import { mirrorNames } from '../journal/mirror-names.ts';
import type { Queryable } from '../journal/pool.ts';
import { RowProofs } from '../journal/row-proof.ts';
import { type Batch, NamedEntry } from './indexer.ts';
import {
  knownIdentity,
  proveEffects,
  proveMembers,
  requireIdentities,
  valuesMissing,
} from './known-identity.ts';

export type EntryBatch = Extract<Batch, { readonly kind: 'entries' }>;
export type MemberBatch = Extract<Batch, { readonly kind: 'members' }>;
type Gone = { readonly kind: 'end' } | { readonly kind: 'compacted' };

/** A second's work, and some ten megabytes. */
const PAGE_EFFECTS = 50_000;

export class LogSource {
  #names: ReadonlyMap<MirrorId, string> = new Map();

  constructor(
    private readonly db: Queryable,
    /** Effects of one page: what is lost with a builder that dies. */
    private readonly effects = PAGE_EFFECTS,
    /** Whether each identity is held against its hash, too: a quarter more of a replay's time. */
    private readonly proves = false,
  ) {}

  /** What follows `after`, but nothing past `goal`. @throws JournalError; RetlError `index.log-diverged` */
  async entries(after: LogPosition, goal: LogPosition | null): Promise<EntryBatch | Gone> {
    if (goal !== null && after >= goal) return { kind: 'end' };
    const page = await this.#page(after);
    if (page.kind === 'end') return page;
    if (page.kind === 'compacted') return { kind: 'compacted' };
    const within = page.entries.filter(({ entry }) => goal === null || entry.position <= goal);
    within.forEach(requireIdentities);
    if (this.proves) await proveEffects(new RowProofs(this.db), within);
    await this.#learn(within.map(({ entry }) => entry.mirror));
    const entries = within.map(
      ({ entry, columns }) => new NamedEntry(this.#name(entry.mirror), entry, columns),
    );
    return { kind: 'entries', entries };
  }

  /** Members of the log snapshot that follow `after`. @throws as {@link entries} */
  async members(snapshot: SnapshotId, after: SnapshotCursor | null): Promise<MemberBatch | Gone> {
    const members = Math.max(1, Math.ceil(this.effects / 4));
    const page = await readSnapshotPage(this.db, snapshot, after, { values: true, members });
    if (page.kind !== 'members') return page;
    for (const { members } of page.targets)
      for (const { identity, position } of members) knownIdentity(identity, position);
    if (this.proves) await proveMembers(new RowProofs(this.db), page.targets);
    await this.#learn(page.targets.map(({ mirror }) => mirror));
    const targets = page.targets.map((held) => ({ ...held, mirror: this.#name(held.mirror) }));
    return { kind: 'members', targets, next: page.next };
  }

  async #page(after: LogPosition): ReturnType<typeof readLogPage> {
    try {
      return await readLogPage(this.db, after, { values: 'identities', effects: this.effects });
    } catch (error) {
      throw error instanceof MissingEffects ? valuesMissing(error.position) : error;
    }
  }

  async #learn(mirrors: readonly MirrorId[]): Promise<void> {
    if (!mirrors.every((id) => this.#names.has(id))) this.#names = await mirrorNames(this.db);
  }

  #name(id: MirrorId): string {
    const name = this.#names.get(id);
    if (name === undefined) throw new RetlError('index.log-diverged', { rule: 'unknown-mirror' });
    return name;
  }
}
