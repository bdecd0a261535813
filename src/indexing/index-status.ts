/**
 * How an index stands beside the log: lag is the head's position less its own, and the age of the first entry it lacks. Of a
 * build that may not go on neither is told (design.md section 7): what it says of its position is of another log, or of
 * another past of this one.
 */

import type { Refusal } from '../domain/checkpoint-validation.ts';
import { type LogPosition, logPosition } from '../domain/ids.ts';
import { logHead } from '../journal/log.ts';
import { type LogLag, logLag } from '../journal/log-reader.ts';
import type { Queryable } from '../journal/pool.ts';
import type { Indexer, OwnBuild } from './indexer.ts';
import { refuseBuild } from './resume.ts';

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
  /** `null`: it is refused. */
  readonly lag: LogLag | null;
  /** Why a person must look before it goes on, as far as that shows without its checkpoint's artifact. */
  readonly refused: Pick<Refusal, 'code' | 'details'> | null;
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
  const own = await indexer.builds();
  // The head last: no build is ahead of it for having moved on in between.
  const { position: head, earliest } = await logHead(journal);
  const builds: BuildStatus[] = [];
  for (const one of own) builds.push(await buildStatus(journal, indexer, one));
  return { index: indexer.definition.name, head, earliest, builds };
}

async function buildStatus(journal: Queryable, indexer: Indexer, one: OwnBuild): Promise<BuildStatus> {
  const refusal = await refuseBuild({ journal, artifacts: null }, indexer, one);
  // What is built anew by itself has its lag until then.
  const refused = refusal?.remedy === 'stop' ? { code: refusal.code, details: refusal.details } : null;
  return {
    build: one.build,
    state: one.state,
    schemaVersion: one.definition.schemaVersion,
    rows: one.rows,
    position: one.mark?.position ?? null,
    goal: one.goal,
    checkpoint: one.mark?.reference ?? null,
    lag: refused === null ? await logLag(journal, lagsFrom(one)) : null,
    refused,
  };
}

/** A build without a checkpoint lacks what follows its log snapshot: how much of that it has read, no position says. */
export function lagsFrom({ mark, snapshot }: Pick<OwnBuild, 'mark' | 'snapshot'>): LogPosition {
  return mark?.position ?? snapshot?.boundary ?? logPosition(0);
}
