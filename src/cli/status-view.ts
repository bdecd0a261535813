/** One mirror in words: what it holds, how its last run stands, and what a person can do about it. */

import { assertNever } from '../domain/assert-never.ts';
import type { ParkedRun } from '../journal/approvals.ts';
import type { MirrorSummary, RunSummary } from '../journal/inspect.ts';
import type { BatchView } from '../journal/resolve.ts';
import { batchLine } from './batch-view.ts';
import { countsWords } from './ending-view.ts';
import type { LiveState } from './live-state.ts';
import { parkedLines } from './parked-view.ts';
import { counted } from './problems-view.ts';
import { phaseWords, waitingWords, whole } from './progress-view.ts';
import { ago, reasonOf, stateOf } from './run-view.ts';

export interface Detail {
  readonly summary: MirrorSummary;
  readonly run: RunSummary;
  /** What the guard asks; `null` where it asks nothing. */
  readonly asks: ParkedRun | null;
  readonly live: LiveState;
  readonly unresolved: readonly BatchView[];
  /** Paints the state of the run. */
  readonly style: (text: string) => string;
  /** In ms since the epoch. */
  readonly now: number;
}

export function detailLines({ summary, run, asks, live, unresolved, style, now }: Detail): readonly string[] {
  const reason = reasonOf(run);
  const words = liveWords(live, run.mirror, now);
  return [
    `holds     ${whole(summary.held)} members`,
    ...exceptionLines(summary),
    ...formerLines(summary),
    `last run  ${style(stateOf(run, asks))}${reason === '' ? '' : `: ${reason}`}`,
    `          run ${run.runId}, started ${ago(run.openedAt, now)}, ${run.holder}`,
    `          ${countsWords(run.counts)}`,
    ...(words === null ? [] : [`now       ${words}`]),
    ...askedLines(asks, now),
    ...unresolvedLines(run.mirror, unresolved, { now, isMoving: isMoving(live) }),
  ];
}

function exceptionLines({ mirror, exceptions }: MirrorSummary): readonly string[] {
  if (exceptions === 0) return [];
  const which = `${counted(exceptions, 'member')} not as the source has ${exceptions === 1 ? 'it' : 'them'}`;
  return [`          ${which}, at the last completed run: rejected, \`retl rejections ${mirror}\``];
}

/** A target that the mirror has left keeps what it holds. */
function formerLines({ formerTargets: { targets, members } }: MirrorSummary): readonly string[] {
  if (targets === 0) return [];
  const where = targets === 1 ? 'an earlier target holds' : `${whole(targets)} earlier targets hold`;
  return [
    `          ${where} ${counted(members, 'member')} still: left as it is, no run of this mirror looks there`,
  ];
}

function askedLines(asks: ParkedRun | null, now: number): readonly string[] {
  if (asks === null) return [];
  const { code, removals, held, shown, deadline, verdict } = asks;
  if (verdict !== null) return [`answered  ${verdict}; the run has not gone on yet`];
  return parkedLines(asks.mirror, { code, removals, held, shown, deadlineMs: deadline.getTime() }, now);
}

function liveWords(live: LiveState, mirror: string, now: number): string | null {
  switch (live.kind) {
    case 'answers':
      return live.progress.waiting === null
        ? phaseWords(live.progress)
        : waitingWords(live.progress.waiting, now);
    case 'no-worker':
      return `no worker answers on task queue ${live.taskQueue}; start one with \`retl worker\``;
    case 'abandoned':
      return `nobody works on it: its workflow is ${live.status.toLowerCase()}; \`retl run ${mirror}\` takes it over`;
    case 'unknown':
      return null;
    default:
      return assertNever(live);
  }
}

/** Requests that are on their way are listed too; only an unknown one waits for a person, or one whose jobs are lost. */
function unresolvedLines(
  mirror: string,
  batches: readonly BatchView[],
  { now, isMoving }: { readonly now: number; readonly isMoving: boolean },
): readonly string[] {
  const lines = batches.map(
    (batch, index) => `${index === 0 ? 'batches ' : '        '}  ${batchLine(batch, now)}`,
  );
  const needsPerson = batches.some(({ state, reason }) => state === 'unknown' || isLost(reason));
  if (isMoving || !needsPerson) return lines;
  return [
    ...lines,
    'Look at the destination, then say what became of each that is unknown, or whose jobs are lost:',
    `  retl resolve ${mirror} <batch> --accepted | --not-applied --because "how you know"`,
  ];
}

/** A run that tries again, asks, or sends by itself finds out what is unknown; only a blocked one waits for a person. */
function isMoving(live: LiveState): boolean {
  return live.kind === 'answers' && live.progress.waiting?.kind !== 'blocked';
}

/** The destination can tell nothing of the jobs that it was said to have begun. */
function isLost(reason: string | null): boolean {
  return reason?.startsWith('jobs-lost:') ?? false;
}
