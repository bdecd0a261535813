/** A membership index in memory: what replaying the log gives, as canonical text, to be compared byte for byte. */

import { logPosition } from '../../src/domain/ids.ts';
import type { EntryEffects } from '../../src/journal/log-effects.ts';
import { readLogPage } from '../../src/journal/log-reader.ts';
import { latestSnapshot, readSnapshotPage, type SnapshotCursor } from '../../src/journal/log-snapshot.ts';
import type { Queryable } from '../../src/journal/pool.ts';

interface Indexed {
  readonly payloadHash: string;
  readonly identity: string | null;
  readonly payload: string | null;
  readonly run: bigint;
  readonly since: bigint;
  readonly sinceAt: bigint;
  readonly position: bigint;
  readonly acceptedAt: bigint;
}

export class ReplayedIndex {
  readonly #members = new Map<string, Indexed>();
  position = 0n;

  /** Follows the log from where it stands, as far as it goes. @param page effects in one page. */
  async follow(db: Queryable, page = 7): Promise<void> {
    for (;;) {
      const next = await readLogPage(db, logPosition(this.position), { values: 'all', effects: page });
      if (next.kind === 'compacted') throw new Error(`compacted: the log begins at ${next.earliest}`);
      if (next.kind === 'end') return;
      for (const entry of next.entries) this.#apply(entry);
    }
  }

  /** A full replay: the newest log snapshot, where there is one, and what follows it. */
  static async replay(db: Queryable, page = 7): Promise<ReplayedIndex> {
    const index = new ReplayedIndex();
    const snapshot = await latestSnapshot(db);
    let after: SnapshotCursor | null = null;
    while (snapshot !== null) {
      const next = await readSnapshotPage(db, snapshot.id, after, { members: page, values: true });
      if (next.kind === 'compacted') throw new Error('the snapshot has gone');
      if (next.kind === 'end') break;
      for (const { target, members } of next.targets)
        for (const { identityHash, payloadHash, sequence, ...rest } of members)
          index.#members.set(key(target, identityHash), {
            ...rest,
            payloadHash: payloadHash.toString('hex'),
            run: sequence >> 32n,
          });
      after = next.next;
    }
    index.position = snapshot?.boundary ?? 0n;
    await index.follow(db, page);
    return index;
  }

  #apply({ entry, effects }: EntryEffects): void {
    for (const effect of effects) {
      const at = key(entry.target, effect.identityHash);
      const before = this.#members.get(at);
      if (effect.payloadHash === null) this.#members.delete(at);
      else
        this.#members.set(at, {
          payloadHash: effect.payloadHash.toString('hex'),
          identity: effect.identity,
          payload: effect.payload,
          run: entry.run,
          since: before?.since ?? entry.position,
          sinceAt: before?.sinceAt ?? entry.recordedAt,
          position: entry.position,
          acceptedAt: entry.recordedAt,
        });
    }
    this.position = entry.position;
  }

  get size(): number {
    return this.#members.size;
  }

  dump(): string {
    return [...this.#members]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([at, m]) =>
          `${at} ${m.payloadHash} ${m.identity} ${m.payload} ${m.run} ${m.since} ${m.sinceAt} ${m.position} ${m.acceptedAt}\n`,
      )
      .join('');
  }
}

function key(target: bigint, identityHash: Buffer): string {
  return `${target.toString().padStart(8, '0')} ${identityHash.toString('hex')}`;
}
