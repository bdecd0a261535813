/** How an index stands beside the log: lag is the head's position less its own, and the age of the first entry it lacks. */

import { type LogPosition, logPosition } from '../domain/ids.ts';
import { logHead } from '../journal/log.ts';
import { logLag } from '../journal/log-reader.ts';
import type { Queryable } from '../journal/pool.ts';
import type { Indexer, OwnBuild } from './indexer.ts';

export interface BuildStatus {
  readonly build: bigint;
  readonly state: OwnBuild['state'];
  readonly schemaVersion: number;
  readonly rows: bigint;
  /** `null`: the log snapshot is being read. */
  readonly position: LogPosition | null;
  /** `null`: it follows the log. */
  readonly goal: LogPosition | null;
  readonly checkpoint: string | null;
  /** Of another log it is not told. */
  readonly lag: { readonly positions: bigint; readonly ms: number } | null;
}

export interface IndexStatus {
  readonly index: string;
  readonly head: LogPosition;
  readonly earliest: LogPosition;
  /** The live one, and the one that is to take its place. */
  readonly builds: readonly BuildStatus[];
}

/** @throws RetlError, JournalError */
export async function indexStatus(journal: Queryable, indexer: Indexer): Promise<IndexStatus> {
  const builds: BuildStatus[] = [];
  // The head last: no build is ahead of it for having moved on in between.
  const own = await indexer.builds();
  const { logId, position: head, earliest } = await logHead(journal);
  for (const one of own) {
    const position = one.mark?.position ?? null;
    const lag = one.logId === logId ? await logLag(journal, lagsFrom(one)) : null;
    builds.push({
      build: one.build,
      state: one.state,
      schemaVersion: one.definition.schemaVersion,
      rows: one.rows,
      position,
      goal: one.goal,
      checkpoint: one.mark?.reference ?? null,
      lag,
    });
  }
  return { index: indexer.definition.name, head, earliest, builds };
}

/** A build without a checkpoint lacks what follows its log snapshot: how much of that it has read, no position says. */
export function lagsFrom({ mark, snapshot }: Pick<OwnBuild, 'mark' | 'snapshot'>): LogPosition {
  return mark?.position ?? snapshot?.boundary ?? logPosition(0);
}
