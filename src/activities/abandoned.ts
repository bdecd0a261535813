/**
 * Closes runs that nobody goes on with, as the next run of their mirror would if there were one (design.md sections 4 and 5): the
 * holder must be gone, the snapshot too old to be resumed, nothing unresolved and no finish begun. What was accepted stays.
 */

import { RetlError } from '../domain/errors.ts';
import type { RunId } from '../domain/ids.ts';
import type { MaintenanceStep, RetentionSettings } from '../domain/maintenance.ts';
import { JournalError } from '../journal/errors.ts';
import { type AbandonedRun, abandonedRuns, adoptAbandoned } from '../journal/retention.ts';
import { loadRun } from '../journal/run-record.ts';
import type { Holder } from '../journal/runs.ts';
import { askTemporal } from './admit.ts';
import { holderOf } from './attempt.ts';
import { close, release } from './close.ts';
import type { Dependencies } from './deps.ts';
import type { RunRef } from './results.ts';

/** What became of one: `left` is not abandoned after all. */
type Left = 'closed' | 'left' | 'put-off';

/** The next of them after the run that the cursor names. @throws JournalError; what asking Temporal throws when cut off */
export async function closeAbandoned(
  deps: Dependencies,
  settings: RetentionSettings,
  cursor: string | null,
  firstRunId: string,
): Promise<MaintenanceStep> {
  const { keepCandidatesMs } = settings;
  const [found] = await abandonedRuns(deps.journal, keepCandidatesMs, BigInt(cursor ?? '0'), 1);
  if (found === undefined) return { kind: 'done', cursor: null, counts: {} };
  const became = await closeOne(deps, found, keepCandidatesMs, firstRunId);
  return {
    kind: 'more',
    cursor: found.run.toString(),
    counts: { candidates: became === 'closed' ? 1 : 0, putOff: became === 'put-off' ? 1 : 0 },
  };
}

async function closeOne(
  deps: Dependencies,
  found: AbandonedRun,
  keepMs: number,
  firstRunId: string,
): Promise<Left> {
  const me = holderOf(deps, firstRunId);
  const gone = found.released || isSame(found.holder, me) || (await isClosed(deps, me, found.holder));
  if (!gone) return 'left';
  const ageMs = await longestAge(deps, found.run, keepMs);
  if (ageMs === null) return 'put-off';
  const closedHolder = found.released ? null : found.holder.firstRunId;
  if (!(await adoptAbandoned(deps.journal, found.run, ageMs, closedHolder, me))) return 'left';
  return closeAdopted(deps, { run: found.run.toString(), firstRunId });
}

/**
 * While a run may be resumed it is nobody's to close: by its own revision, or by what the mirror says now, where it is configured
 * still. `null`: a revision that this release does not read, and may not close.
 */
async function longestAge(deps: Dependencies, run: RunId, keepMs: number): Promise<number | null> {
  const { mirror, settings } = await loadRun(deps.journal, run);
  try {
    const own = deps.configuration.parse(settings).resumeMaxAgeMs;
    const now = await deps.configuration.mirror(mirror).then(
      ({ resumeMaxAgeMs }) => resumeMaxAgeMs,
      (error: unknown) => (error instanceof RetlError ? 0 : Promise.reject(error)),
    );
    return Math.max(keepMs, own, now);
  } catch (error) {
    if (error instanceof RetlError) return null;
    throw error;
  }
}

/** From here on it is this maintenance's: whatever happens, it is closed or let go again, or the next try finds it. */
async function closeAdopted(deps: Dependencies, ref: RunRef): Promise<Left> {
  try {
    const closed = await close(deps, { ...ref, closing: 'expired', reason: 'abandoned' });
    if (closed.kind === 'closed') return 'closed';
  } catch (error) {
    // Somebody has taken it up, or its destination is away: neither is a reason to end the maintenance.
    const isForeseen =
      error instanceof RetlError || (error instanceof JournalError && error.kind === 'fenced');
    if (!isForeseen) throw error;
    deps.logger.warn('an abandoned run could not be closed', {
      run: ref.run,
      code: error instanceof RetlError ? error.code : 'run.fenced',
    });
    if (!(error instanceof RetlError)) return 'put-off';
  }
  await release(deps, { ...ref, how: 'failed', reason: 'abandoned' });
  return 'put-off';
}

async function isClosed(deps: Dependencies, me: Holder, holder: Holder): Promise<boolean> {
  return (await askTemporal(deps, me, holder)) === 'closed';
}

function isSame(a: Holder, b: Holder): boolean {
  return (
    a.firstRunId === b.firstRunId &&
    a.workflowId === b.workflowId &&
    a.namespace === b.namespace &&
    a.cluster === b.cluster
  );
}
