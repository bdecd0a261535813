/** A run's progress in words: one line that a terminal redraws, or plain lines where nobody watches. */

import { assertNever } from '../domain/assert-never.ts';
import type { Progress, Waiting } from '../domain/messages.ts';
import { reasonHint } from '../domain/reason-hints.ts';
import type { RunCounts } from '../domain/run.ts';

/** How far the present phase is, from 0 to 1; `null` where its size is not known. */
export function fractionOf({ phase, counts }: Progress): number | null {
  if (phase === 'additions' && counts.uploaded !== undefined) return share(counts.uploaded, counts.members);
  if (phase === 'additions') return share(upserted(counts) + counts.rejected, toUpsert(counts));
  if (phase === 'removals') return share(counts.removed, counts.toRemove);
  return phase === 'complete' || phase === 'closed' ? 1 : null;
}

function upserted({ added, changed, refreshed = 0 }: RunCounts): number {
  return added + changed + refreshed;
}

function toUpsert({ toAdd, toChange, toRefresh = 0 }: RunCounts): number {
  return toAdd + toChange + toRefresh;
}

function share(done: number, planned: number): number | null {
  return planned === 0 ? null : Math.min(1, done / planned);
}

/** What the present phase has done so far. */
export function phaseWords({ phase, counts }: Progress): string {
  switch (phase) {
    case 'admit':
      return 'waiting to be admitted';
    case 'init':
      return 'opening the destination';
    case 'extract':
      return `reading the source: ${whole(counts.sourceRows)} rows`;
    case 'seal':
      return `sealing ${whole(counts.members)} members`;
    case 'guard':
      return guardWords(counts);
    case 'additions':
      if (counts.uploaded !== undefined)
        return `uploading: ${whole(counts.uploaded)} of ${whole(counts.members)}`;
      return `sending additions: ${whole(upserted(counts))} of ${whole(toUpsert(counts))}`;
    case 'removals':
      return `sending removals: ${whole(counts.removed)} of ${whole(counts.toRemove)}`;
    case 'finish':
      return 'finishing';
    case 'promote':
      return 'recording the result';
    case 'complete':
    case 'closed':
      return 'done';
    default:
      return assertNever(phase);
  }
}

/** Before the comparison is made, its counts are all 0 and say nothing. */
function guardWords({ toAdd, toChange, toRemove, unchanged }: RunCounts): string {
  if (toAdd + toChange + toRemove + unchanged === 0) return 'comparing with what the destination holds';
  return `checking the plan: ${whole(toAdd)} to add, ${whole(toChange)} to change, ${whole(toRemove)} to remove`;
}

/** Why the run is not moving, and until when. `now` in ms since the epoch. */
export function waitingWords(waiting: Waiting, now: number): string {
  const until = waiting.untilMs === null ? '' : `, next look in ${span(Math.max(0, waiting.untilMs - now))}`;
  const within = waiting.untilMs === null ? '' : `, within ${span(Math.max(0, waiting.untilMs - now))}`;
  const since = waiting.sinceMs === undefined ? '' : ` for ${span(Math.max(0, now - waiting.sinceMs))}`;
  const batch = waiting.batch === null ? '' : ` (batch ${waiting.batch})`;
  switch (waiting.kind) {
    case 'paused':
      return 'paused; `retl resume` goes on';
    case 'retry':
      return `waiting to try again: ${waiting.code}${until}`;
    case 'pending':
      return `waiting for the destination: ${waiting.code}${since}${until}`;
    case 'draining':
      return `stopping: ${waiting.code}`;
    case 'parked':
      return `parked by the guard: ${waiting.code}; \`retl approve\` or \`retl reject\` answers${within}`;
    case 'blocked':
      return waiting.batch === null
        ? `blocked: ${waiting.code}; mend it, then \`retl resume\` asks again`
        : `blocked: ${waiting.code}${batch}; \`retl status\` says more, \`retl resolve\` decides${hintOf(waiting.code)}`;
    default:
      return assertNever(waiting.kind);
  }
}

function hintOf(code: string): string {
  const hint = reasonHint(code);
  return hint === null ? '' : ` (${hint})`;
}

const BAR_WIDTH = 24;

/** The redrawn line, cut to the terminal's width. */
export function barLine(progress: Progress, columns: number, now: number): string {
  const fraction = fractionOf(progress);
  const bar =
    fraction === null ? '' : `${barOf(fraction)} ${String(Math.floor(fraction * 100)).padStart(3)}%  `;
  const words = progress.waiting === null ? phaseWords(progress) : waitingWords(progress.waiting, now);
  return `${bar}${words}`.slice(0, Math.max(10, columns - 1));
}

function barOf(fraction: number): string {
  const full = Math.round(fraction * BAR_WIDTH);
  return '█'.repeat(full) + '░'.repeat(BAR_WIDTH - full);
}

/** e.g. `45s`, `12m`, `3h 5m`, `2d 4h`. */
export function span(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 90) return `${seconds}s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 90) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours}h` : `${hours}h ${minutes % 60}m`;
  return hours % 24 === 0 ? `${Math.floor(hours / 24)}d` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

export function whole(value: number): string {
  return value.toLocaleString('en-US');
}
