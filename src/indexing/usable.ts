/**
 * Whether an index will do for an answer (design.md section 7): it must be of this log as it is now, follow it, and not be far
 * behind. Whoever asks falls back to the journal otherwise, and says why.
 */

import { refuseLog } from '../domain/checkpoint-validation.ts';
import { type ErrorCode, RetlError } from '../domain/errors.ts';
import type { LogPosition } from '../domain/ids.ts';
import { logStateAt } from '../journal/checkpoints.ts';
import { type LogLag, logLag } from '../journal/log-reader.ts';
import type { Queryable } from '../journal/pool.ts';
import type { OwnBuild } from './indexer.ts';
import type { Answer } from './reader.ts';
import { rowsOfOtherLog } from './resume.ts';

/** An index that lacks an entry for longer does not follow the log, however few it lacks. */
const STOPPED_MS = 300_000;

export type Asked<Found> =
  | {
      readonly kind: 'answered';
      /** As of which the answer is, and how far behind that was. */
      readonly position: LogPosition;
      readonly lag: LogLag;
      readonly found: readonly Found[];
      readonly more: boolean;
    }
  | { readonly kind: 'passed-over'; readonly code: ErrorCode };

/**
 * Asks an index, and judges the answer.
 * @param maxLag positions that it may be behind
 * @throws JournalError
 */
export async function asked<Found>(
  journal: Queryable,
  maxLag: number,
  ask: () => Promise<Answer<Found>>,
): Promise<Asked<Found>> {
  let answer: Answer<Found>;
  try {
    answer = await ask();
  } catch (error) {
    if (!(error instanceof RetlError)) throw error;
    return { kind: 'passed-over', code: error.code };
  }
  if (answer.kind !== 'answered') return { kind: 'passed-over', code: CODES[answer.kind] };
  const { build, found, more } = answer;
  const judged = await judge(journal, build, maxLag);
  return judged.kind === 'passed-over' ? judged : { ...judged, kind: 'answered', found, more };
}

const CODES = { 'not-built': 'index.not-built', 'other-version': 'index.schema-changed' } as const;

type Judged =
  | { readonly kind: 'usable'; readonly position: LogPosition; readonly lag: LogLag }
  | { readonly kind: 'passed-over'; readonly code: ErrorCode };

async function judge(journal: Queryable, build: OwnBuild, maxLag: number): Promise<Judged> {
  const { mark, goal } = build;
  if (mark === null) return { kind: 'passed-over', code: 'index.not-built' };
  const { position } = mark;
  // Of a page that was under way readers see rows past the checkpoint: they must be of this log, too.
  const otherLog =
    refuseLog(mark, await logStateAt(journal, position, null)) ?? (await rowsOfOtherLog(journal, build));
  if (otherLog !== null) return { kind: 'passed-over', code: otherLog.code };
  if (goal !== null) return { kind: 'passed-over', code: 'index.frozen' };
  const lag = await logLag(journal, position);
  if (lag.positions > BigInt(maxLag) || lag.ms > STOPPED_MS)
    return { kind: 'passed-over', code: 'index.behind' };
  return { kind: 'usable', position, lag };
}
