/** What a parked run asks, and what became of an answer, whichever way it went. */

import type { Parked, UpdateName } from '../domain/messages.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import type { Output } from './output.ts';
import { parkedLines } from './parked-view.ts';
import { whole } from './progress-view.ts';
import { ago } from './run-view.ts';

export const VERDICTS = { approve: 'approved', reject: 'rejected' } as const satisfies {
  readonly [A in UpdateName]: string;
};
export type Verdict = (typeof VERDICTS)[UpdateName];

/** What is known of the question; `null` where Temporal alone was asked. */
export interface Asked {
  readonly mirror: string;
  readonly runId: string | null;
  readonly parked: Parked;
  readonly since: Date | null;
  readonly toAdd: number;
  readonly toChange: number;
  /** Where Temporal alone was asked: the workflow that asks. */
  readonly workflowId?: string;
  /** The answer that stands, where the run has not heeded it yet. */
  readonly verdict: Verdict | null;
}

/** Whether the run knows of the answer; `paused`: it does, and goes on only when it is resumed. */
export type Told = 'told' | 'paused' | 'not-running' | 'unreachable';

export type Answered =
  | {
      readonly kind: 'recorded';
      readonly mirror: string;
      readonly told: Told;
    }
  /** Nothing was changed. `why` is stable. */
  | { readonly kind: 'refused'; readonly mirror: string; readonly why: string };

export function showAsked(output: Output, asked: Asked): void {
  const { mirror, runId, parked, since, toAdd, toChange } = asked;
  const now = Date.now();
  const run = runId === null ? '' : ` run ${runId}`;
  const parkedSince = since === null ? '' : `, parked ${ago(since, now)}`;
  output.note(`${output.style('yellow', mirror)}:${run}${parkedSince}`);
  output.note(
    `  plan      ${whole(toAdd)} to add, ${whole(toChange)} to change, ${whole(parked.removals)} to remove`,
  );
  for (const line of parkedLines(mirror, parked, now)) output.note(`  ${line}`);
  if (asked.verdict !== null)
    output.note(`  answered  ${asked.verdict} already; the run has not gone on yet`);
}

/** What the answer means for the run, in a line. */
export function answeredWords(
  answer: UpdateName,
  { mirror, told }: Extract<Answered, { kind: 'recorded' }>,
): string {
  const what = `${mirror}: recorded as ${VERDICTS[answer]}`;
  switch (told) {
    case 'told':
      return `${what}; the run looks at once, or as soon as a worker is there`;
    case 'paused':
      return `${what}; the run is paused, and goes on with \`retl resume ${mirror}\``;
    case 'not-running':
      return answer === 'approve'
        ? `${what}; its execution is over: \`retl run ${mirror}\` goes on with it`
        : `${what}; its execution is over: the next \`retl run ${mirror}\` closes it and reads the source anew`;
    case 'unreachable':
      return `${what}; Temporal cannot be reached: the run sees it when it next looks, or tell it with \`retl poll ${mirror}\``;
  }
}

const WHY: { readonly [why: string]: string } = {
  'not-parked': 'No run of it is parked.',
  stale: 'The run asks about another set of removals now.',
  expired: 'The deadline has passed: the run is closed, and nobody is removed.',
  answered: 'The other answer was given before: the first one stands.',
  closed: 'The run is closed.',
  'not-running': 'No run of it is under way.',
  'other-queue':
    'What runs is another environment’s or project’s, on another task queue: choose it with --env or --project.',
  'no-answer': 'No worker has taken the answer up yet; look with `retl status` before you answer again.',
};

export function refusedWords({ mirror, why }: Extract<Answered, { kind: 'refused' }>): string {
  return `${mirror}: ${WHY[why] ?? 'The answer was refused.'}`;
}

/** One mirror's refusal, in the form of every refusal. */
export function answerRefusal({ mirror, why }: Extract<Answered, { kind: 'refused' }>): Refusal {
  return new Refusal(
    EXIT.refused,
    why,
    `${mirror}: ${WHY[why] ?? 'The answer was refused.'} Nothing was changed.`,
    `\`retl status ${mirror}\` shows how it stands.`,
  );
}
