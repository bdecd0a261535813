/** Compaction of a test's log in one go. */

import type pg from 'pg';
import { logPosition } from '../../src/domain/ids.ts';
import { beginCompaction, compactStep } from '../../src/journal/compaction.ts';
import { type LogSnapshot, latestSnapshot } from '../../src/journal/log-snapshot.ts';

/** @returns the log snapshot, complete; its boundary is `boundary` */
export async function compactTo(db: pg.Pool, boundary: number): Promise<LogSnapshot> {
  const begun = await beginCompaction(db, logPosition(boundary));
  if (begun.kind !== 'begun') throw new Error(begun.kind);
  let step = await compactStep(db, 1000);
  while (step.kind === 'building') step = await compactStep(db, 1000);
  const snapshot = await latestSnapshot(db);
  if (step.kind !== 'complete' || snapshot === null) throw new Error(step.kind);
  return snapshot;
}
