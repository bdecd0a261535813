/** One mirror in words: what it holds, how its last run stands, and what a person can do about it. */

import { assertNever } from '../domain/assert-never.ts';
import { neededWords, type Standstill, standstillOf } from '../domain/needed.ts';
import type { ParkedRun } from '../journal/approvals.ts';
import type { MirrorSummary, RunSummary } from '../journal/inspect.ts';
import type { BatchView } from '../journal/resolve.ts';
import { batchLine } from './batch-view.ts';
import { countsWords } from './ending-view.ts';
import type { LiveState } from './live-state.ts';
import { noWorkerWords } from './no-worker.ts';
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
    ...sinceLines(run, live, now),
    ...(words === null ? [] : [`now       ${words}`]),
    ...askedLines(asks, now),
    ...unresolved.map((batch, index) => `${index === 0 ? 'batches ' : '        '}  ${batchLine(batch, now)}`),
    ...neededLines(run, live, asks),
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
      return noWorkerWords(live.taskQueue);
    case 'abandoned':
      return `nobody works on it: its workflow is ${live.status.toLowerCase()}; \`retl run ${mirror}\` takes it over`;
    case 'unknown':
      return null;
    default:
      return assertNever(live);
  }
}

/** How long it has been so, as the journal has it: a run that answers says so itself. */
function sinceLines({ doing }: RunSummary, live: LiveState, now: number): readonly string[] {
  if (live.kind === 'answers' || doing === null || doing.since === null) return [];
  return [`          ${doing.state} since ${doing.since.toISOString()}, ${ago(doing.since, now)}`];
}

/** What a person has to do. A parked run's question says it in more words. */
function neededLines(run: RunSummary, live: LiveState, asks: ParkedRun | null): readonly string[] {
  const stands = standstill(run, live);
  if (stands === null || asks !== null) return [];
  const needed = neededWords(run.mirror, stands);
  return needed === null ? [] : [`needs     ${needed}`];
}

/** What the run says of itself goes before what the journal has. A run that tries again by itself needs nobody. */
function standstill({ doing }: RunSummary, live: LiveState): Standstill | null {
  if (live.kind === 'answers') return live.progress.waiting;
  return doing === null ? null : standstillOf(doing);
}
