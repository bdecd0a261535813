/** A parked run in words: what it would do, which limit that is beyond, until when it waits, and how to answer. */

import { assertNever } from '../domain/assert-never.ts';
import { type GuardCode, isMoved, movedWords, type Parked } from '../domain/messages.ts';
import type { ParkedRun } from '../journal/approvals.ts';
import { EXIT } from './exit-codes.ts';
import type { Output } from './output.ts';
import { span, whole } from './progress-view.ts';

/**
 * What a run that is followed asks. The watcher leaves (`isLast`: then it is the result) or goes on watching; the run waits
 * either way, and nothing of this is success.
 */
export function showParked(output: Output, mirror: string, parked: Parked, isLast: boolean): void {
  const { code, removals, held, shown, deadlineMs } = parked;
  const say = (text: string) => (isLast ? output.line(text) : output.note(text));
  const deadline = new Date(deadlineMs).toISOString();
  const exit = isLast ? { exitCode: EXIT.guardHeld } : {};
  output.event({ event: 'parked', mirror, code, removals, held, shown, deadline, ...exit });
  say(`${output.style('yellow', mirror)}: parked by the guard; nobody was removed`);
  for (const line of parkedLines(mirror, parked, Date.now())) say(`  ${line}`);
}

/** For a place in a line: what the run would do. */
export function parkedWords({ code, removals, held }: Pick<Parked, 'code' | 'removals' | 'held'>): string {
  if (code === 'unknown-baseline')
    return 'it would replace whatever the target holds, for which nobody has vouched';
  const share = held === 0 ? '' : ` (${percent(removals / held)})`;
  const what = `it would remove ${whole(removals)} of ${whole(held)} members${share}`;
  if (isMoved(code)) return `it would ${movedWords(code)}; ${what}`;
  return code === 'empty-snapshot' ? `the query gave no member; ${what}` : what;
}

/** One line for a list: what is asked, and how long there is to answer. */
export function parkedSummary(asked: ParkedRun): string {
  const { verdict, leftMs } = asked;
  const left = leftMs > 0 ? `answer within ${span(leftMs)}` : 'the deadline has passed';
  return `the guard asks: ${parkedWords(asked)}; ${verdict === null ? left : `${verdict} already`}`;
}

/** A line per fact. `now` in ms since the epoch. */
export function parkedLines(mirror: string, parked: Parked, now: number): readonly string[] {
  const { code, shown, deadlineMs } = parked;
  return [
    `asks      ${parkedWords(parked)}; beyond ${limitWords(code)}`,
    `until     ${deadlineWords(deadlineMs, now)}`,
    `shown     ${shown}`,
    `names     \`retl plan ${mirror} --identities\`, for those who may read them`,
    `answer    retl approve ${mirror} --because "…"   or   retl reject ${mirror} --because "…"`,
  ];
}

/** `deadlineMs` and `now` in ms since the epoch. */
export function deadlineWords(deadlineMs: number, now: number): string {
  const left = deadlineMs - now;
  const when = left > 0 ? `in ${span(left)}` : 'passed';
  return `${new Date(deadlineMs).toISOString()}, ${when}; without an answer it counts as rejected`;
}

/** The setting that the run is beyond. */
export function limitWords(code: GuardCode): string {
  switch (code) {
    case 'unknown-baseline':
      return 'what is known: `baseline: {kind: replace, attested: "…"}` says that it may go';
    case 'credentials-changed':
      return 'what was sent to before: approve it where this is the same account; `account` of the connection names one for good';
    case 'removals-moved':
      return 'what was sent to before: approve it where removals are meant to go there now';
    case 'route-changed':
      return 'what was sent to before: approve it where this is the same account, and removals are meant to go there now';
    case 'empty-snapshot':
      return '`safety.empty_snapshot`';
    case 'max-removals':
      return '`safety.max_removals` (a number of members)';
    case 'max-removal-share':
      return '`safety.max_removals` (a share of the members)';
    default:
      return assertNever(code);
  }
}

/** Never rounded up to all, nor down to none. */
function percent(share: number): string {
  if (share >= 1) return '100%';
  const text = (Math.floor(share * 1000) / 10).toFixed(1).replace(/\.0$/, '');
  return text === '0' ? 'less than 0.1%' : `${text}%`;
}
