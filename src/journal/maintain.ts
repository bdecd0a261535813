/**
 * What maintenance does in the journal alone (design.md section 5, retention), one bounded step a call: the workflow and
 * `retl maintenance run --once` make the same steps. Whoever dies has lost one step, and anybody goes on.
 */

import { RetlError } from '../domain/errors.ts';
import { logPosition, sha256 } from '../domain/ids.ts';
import type {
  MaintenanceCounts,
  MaintenanceStep,
  MaintenanceTask,
  RetentionSettings,
} from '../domain/maintenance.ts';
import {
  beginCompaction,
  compactStep,
  GRACE_MS,
  positionBefore,
  pruneClosed,
  STEP_ROWS,
  sweepStep,
} from './compaction.ts';
import { dateOrNull, one } from './decode.ts';
import { type Queryable, run } from './pool.ts';
import { pruneGenerations } from './retention.ts';
import { type VerifiedPlace, verifyLogFrom } from './verify-log.ts';

/** Tables dropped in one transaction. */
const DROPS = 10;
/** A log snapshot copies every member that is held: no more often than this, in ms. */
const COMPACT_EVERY_MS = 7 * 86_400_000;

export type JournalTask = Extract<MaintenanceTask, 'generations' | 'log' | 'receipts'>;

/**
 * @param cursor of the step before; `null` begins the task.
 * @param stopped ends what would take longer.
 * @throws JournalError; RetlError `log.broken`
 */
export async function maintainJournal(
  db: Queryable,
  task: JournalTask,
  settings: RetentionSettings,
  cursor: string | null,
  stopped: () => boolean,
): Promise<MaintenanceStep> {
  switch (task) {
    case 'generations': {
      const generations = await pruneGenerations(db, DROPS);
      return { kind: generations > 0 ? 'more' : 'done', cursor: null, counts: { generations } };
    }
    case 'receipts': {
      const { runs, more } = await pruneClosed(db, settings.keepReceiptsMs, STEP_ROWS);
      return { kind: more ? 'more' : 'done', cursor: null, counts: { receipts: runs } };
    }
    case 'log':
      return logStep(db, settings, placeIn(cursor), stopped);
  }
}

/** How far the compaction has come: `verify` up to a place, `build` the snapshot, `sweep` what it makes superfluous. */
type LogPlace = { readonly at: 'begin' | 'build' | 'sweep' } | ({ readonly at: 'verify' } & VerifiedPlace);

function placeIn(cursor: string | null): LogPlace {
  if (cursor === null) return { at: 'begin' };
  const [at = '', position = '', entryHash = ''] = cursor.split(' ');
  if (at === 'verify') return { at, position: logPosition(BigInt(position)), entryHash: sha256(entryHash) };
  return { at: at === 'build' ? at : 'sweep' };
}

const more = (cursor: string, counts: Partial<MaintenanceCounts> = {}): MaintenanceStep => ({
  kind: 'more',
  cursor,
  counts,
});

async function logStep(
  db: Queryable,
  { compactMs }: RetentionSettings,
  place: LogPlace,
  stopped: () => boolean,
): Promise<MaintenanceStep> {
  switch (place.at) {
    case 'begin':
      if (compactMs === null || !(await isDue(db))) return more('sweep');
      return verify(db, compactMs, null, stopped);
    case 'verify':
      return compactMs === null ? more('sweep') : verify(db, compactMs, place, stopped);
    case 'build': {
      const step = await compactStep(db, STEP_ROWS);
      if (step.kind === 'building') return more('build');
      return more('sweep', { compactions: step.kind === 'complete' ? 1 : 0 });
    }
    case 'sweep': {
      const step = await sweepStep(db, STEP_ROWS, GRACE_MS);
      if (step.kind === 'idle') return { kind: 'done', cursor: null, counts: {} };
      return more('sweep', { tables: step.kind === 'dropped' ? 1 : 0 });
    }
  }
}

/** A log that was tampered with must not become a snapshot that nobody can see it in. */
async function verify(
  db: Queryable,
  compactMs: number,
  from: VerifiedPlace | null,
  stopped: () => boolean,
): Promise<MaintenanceStep> {
  const verdict = await verifyLogFrom(db, from, stopped, { effects: true });
  if (verdict.kind === 'broken')
    throw new RetlError('log.broken', { rule: verdict.rule, position: `${verdict.position}` });
  if (verdict.kind === 'more') return more(`verify ${verdict.position} ${verdict.entryHash}`);
  const begun = await beginCompaction(db, await positionBefore(db, compactMs));
  return more(begun.kind === 'nothing' || begun.kind === 'held' ? 'sweep' : 'build');
}

const LAST_COMPLETED = `
  select max(completed_at) as last, clock_timestamp() - $1 * interval '1 ms' as due from retl.log_snapshot`;

async function isDue(db: Queryable): Promise<boolean> {
  const row = one(await run(db, LAST_COMPLETED, [COMPACT_EVERY_MS]));
  const [last, due] = [dateOrNull(row, 'last'), dateOrNull(row, 'due')];
  return last === null || due === null || last < due;
}
