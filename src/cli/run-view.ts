/** A run of the journal in words. */

import type { ParkedRun } from '../journal/approvals.ts';
import type { RunSummary } from '../journal/inspect.ts';
import type { Style } from './output.ts';
import { parkedSummary } from './parked-view.ts';
import { counted } from './problems-view.ts';
import { span } from './progress-view.ts';

/**
 * One word for where a run stands; an open run that nobody holds is never shown as running.
 * @param asked what the guard asks, where that was looked up.
 */
export function stateOf(run: RunSummary, asked: ParkedRun | null = null): string {
  if (run.state !== 'open') return run.state;
  if (run.released !== null && isExpired(asked)) return `${run.released}, not approved in time`;
  if (run.released !== null) return `${run.released}, resumable`;
  return `${run.doing?.state ?? 'running'} (${run.phase})`;
}

/** Nobody has answered, and nobody can any more: the next run closes it, and reads the source anew. */
function isExpired(asked: ParkedRun | null): boolean {
  return asked !== null && asked.verdict === null && asked.leftMs <= 0;
}

/** Of endings that an answer, or its absence, has brought about, where nothing else is recorded. */
const UNANSWERED: { readonly [state: string]: string } = {
  'guard-expired': 'nobody answered what the guard asked in time',
  'guard-rejected': 'its removals were rejected',
};

export function stateStyle(run: RunSummary): Style {
  if (run.state === 'completed') return run.counts.rejected === 0 ? 'green' : 'yellow';
  if (run.state === 'open') return run.doing?.state === 'running' ? 'cyan' : 'yellow';
  if (run.state === 'imported') return 'green';
  return run.state === 'aborted' || run.state === 'discarded' ? 'yellow' : 'red';
}

/** e.g. `3h ago`. `now` in ms since the epoch. */
export function ago(date: Date, now: number): string {
  return `${span(Math.max(0, now - date.getTime()))} ago`;
}

/** @param asked what the guard asks, where that was looked up. */
export function reasonOf(run: RunSummary, asked: ParkedRun | null = null): string {
  const reason = run.reason ?? waitCode(run) ?? UNANSWERED[run.state];
  const parts = reason === undefined ? [] : [reason];
  if (run.state === 'completed' && run.counts.rejected > 0)
    parts.push(`${counted(run.counts.rejected, 'rejection')} tolerated`);
  if (run.parked !== null)
    parts.push(asked === null ? `the guard asks: ${run.parked}` : parkedSummary(asked));
  const underWay = run.unresolvedBatches - run.unknownBatches;
  if (run.unknownBatches > 0) parts.push(`${counted(run.unknownBatches, 'outcome')} unknown`);
  if (underWay > 0) parts.push(`${counted(underWay, 'batch', 'batches')} under way`);
  return parts.join(', ');
}

/** Why a run that is held, and not parked, does not move. */
function waitCode({ doing, released, parked }: RunSummary): string | undefined {
  if (released !== null || parked !== null || doing === null) return undefined;
  return doing.code ?? undefined;
}
