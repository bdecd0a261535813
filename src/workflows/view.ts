/** What the run shows of itself: the query, the current details and the search attributes. Names, counts and codes only. */

import { defineSearchAttributeKey } from '@temporalio/common';
import { setCurrentDetails, setHandler, upsertSearchAttributes } from '@temporalio/workflow';
import {
  isMoved,
  movedWords,
  type Parked,
  type Progress,
  RUN_ATTRIBUTES,
  type Waiting,
} from '../domain/messages.ts';
import { neededWords } from '../domain/needed.ts';
import { reasonHint } from '../domain/reason-hints.ts';
import type { Phase, RunCounts } from '../domain/run.ts';
import type { Control } from './control.ts';
import { progressQuery } from './messages.ts';
import type { Parking } from './parking.ts';

const MIRROR = defineSearchAttributeKey(RUN_ATTRIBUTES.mirror, 'KEYWORD');
const PHASE = defineSearchAttributeKey(RUN_ATTRIBUTES.phase, 'KEYWORD');
const OUTCOME = defineSearchAttributeKey(RUN_ATTRIBUTES.outcome, 'KEYWORD');

export const NO_COUNTS: RunCounts = {
  sourceRows: 0,
  members: 0,
  excluded: 0,
  toAdd: 0,
  toChange: 0,
  toRemove: 0,
  unchanged: 0,
  added: 0,
  changed: 0,
  removed: 0,
  rejected: 0,
};

/** What comes of a wait by itself, for people who look at the UI; what needs them is said in words of its own. */
const ADVICE: Readonly<Record<Exclude<Waiting['kind'], 'paused' | 'blocked' | 'parked'>, string>> = {
  retry:
    'It tries again by itself. The signal `resume` makes it look at once, but not send before the destination’s own delay is over.',
  pending:
    'The destination has taken work and not finished it; nothing is sent twice. It asks again by itself; the signal `poll` asks at once.',
  draining: 'Requests in flight are being finished and recorded.',
};

export class View {
  runId: string | null = null;
  counts: RunCounts = NO_COUNTS;
  #phase: Phase | 'admit' | 'closed' = 'admit';
  #waiting: Waiting | null = null;
  #searchAttributes = false;
  /** When the phase was entered, and what was accepted until then: what its rate is reckoned from. */
  #since = { ms: 0, accepted: 0 };

  constructor(
    private readonly mirror: string,
    private readonly control: Control,
    private readonly parking: Parking,
  ) {
    setHandler(progressQuery, () => this.progress());
    control.heard = () => this.#show();
    this.#show();
  }

  progress(): Progress {
    return {
      mirror: this.mirror,
      runId: this.runId,
      phase: this.#phase,
      counts: this.counts,
      waiting: this.#shownWaiting(),
      control: this.control.request,
      paused: this.control.paused,
      parked: this.parking.parked,
    };
  }

  admitted(runId: string, counts: RunCounts, searchAttributes: boolean): void {
    this.runId = runId;
    this.counts = counts;
    this.#name(searchAttributes);
  }

  /** There is no run: what was asked for is to be found all the same, and how it ended. */
  notAdmitted(outcome: string, searchAttributes: boolean): void {
    this.#name(searchAttributes);
    this.ended(outcome);
  }

  /** An attribute that is not registered would fail the workflow task: the worker has looked. */
  #name(searchAttributes: boolean): void {
    this.#searchAttributes = searchAttributes;
    if (searchAttributes) upsertSearchAttributes([{ key: MIRROR, value: this.mirror }]);
  }

  enter(phase: Phase | 'closed'): void {
    this.#phase = phase;
    this.#waiting = null;
    this.#since = { ms: Date.now(), accepted: accepted(this.counts) };
    if (this.#searchAttributes && phase !== 'closed') upsertSearchAttributes([{ key: PHASE, value: phase }]);
    this.#show();
  }

  count(counts: RunCounts): void {
    this.counts = counts;
    this.#show();
  }

  /** Shows why the run waits for as long as `work` takes. */
  async while(waiting: Waiting, work: () => Promise<void>): Promise<void> {
    this.#waiting = waiting;
    if (this.#searchAttributes) upsertSearchAttributes([{ key: PHASE, value: waiting.kind }]);
    this.#show();
    try {
      await work();
    } finally {
      this.#waiting = null;
      if (this.#searchAttributes && this.#phase !== 'admit' && this.#phase !== 'closed') {
        upsertSearchAttributes([{ key: PHASE, value: this.#phase }]);
      }
      this.#show();
    }
  }

  ended(outcome: string): void {
    this.enter('closed');
    if (!this.#searchAttributes) return;
    upsertSearchAttributes([
      { key: PHASE, value: 'closed' },
      { key: OUTCOME, value: outcome },
    ]);
  }

  /** Told to stop, a run first finishes what it has in flight: that is what it waits for then. */
  #shownWaiting(): Waiting | null {
    if (this.#waiting !== null || !this.control.draining) return this.#waiting;
    const code = this.control.request === 'none' ? 'pause' : this.control.request;
    return { kind: 'draining', code, untilMs: null, batch: null };
  }

  /** How fast the phase goes, waits included, and how long it will take at that; `null` where nothing can be said. */
  #rate(): string | null {
    const { toAdd, toChange, toRemove, added, changed, removed, toRefresh = 0, refreshed = 0 } = this.counts;
    const upserts = toAdd + toChange + toRefresh - added - changed - refreshed;
    const left = this.#phase === 'removals' ? toRemove - removed : upserts;
    const seconds = (Date.now() - this.#since.ms) / 1000;
    const perSecond = (accepted(this.counts) - this.#since.accepted) / seconds;
    const sends = this.#phase === 'additions' || this.#phase === 'removals';
    if (!sends || left <= 0 || seconds < 1 || perSecond <= 0) return null;
    return `${perSecond.toFixed(perSecond < 10 ? 1 : 0)} members a second in this phase, about ${Math.ceil(left / perSecond)} s left`;
  }

  #show(): void {
    const c = this.counts;
    const lines = [
      `**${this.mirror}**: phase **${this.#phase}**${this.runId === null ? '' : `, run ${this.runId}`}`,
      '',
      `- added: **${c.added}** of ${c.toAdd}`,
      `- changed: **${c.changed}** of ${c.toChange}`,
      `- removed: **${c.removed}** of ${c.toRemove}`,
      `- unchanged: ${c.unchanged}`,
      ...(c.toRefresh === undefined
        ? []
        : [`- of these, sent again: **${c.refreshed ?? 0}** of ${c.toRefresh}`]),
      ...(c.uploaded === undefined ? [] : [`| uploaded | ${c.members} | ${c.uploaded} |`]),
      '',
      `${c.sourceRows} source rows, ${c.members} members, ${c.excluded} excluded, ${c.rejected} rejected`,
    ];
    const rate = this.#rate();
    if (rate !== null) lines.push('', rate);
    const waiting = this.#shownWaiting();
    if (waiting !== null) lines.push('', waitingInWords(this.mirror, waiting));
    const { parked } = this.parking;
    if (parked !== null) lines.push('', ...parkedInWords(this.mirror, parked));
    setCurrentDetails(lines.join('\n'));
  }
}

/** Members that the destination has accepted. */
function accepted({ added, changed, removed, refreshed = 0 }: RunCounts): number {
  return added + changed + removed + refreshed;
}

function waitingInWords(mirror: string, waiting: Waiting): string {
  const until = waiting.untilMs === null ? '' : `, until ${new Date(waiting.untilMs).toISOString()}`;
  const since = waiting.sinceMs === undefined ? '' : `, since ${new Date(waiting.sinceMs).toISOString()}`;
  const batch = waiting.batch === null ? '' : `, batch \`${waiting.batch}\``;
  const hint = waiting.kind === 'blocked' ? reasonHint(waiting.code) : null;
  const meaning = hint === null ? '' : ` (${waiting.code}: ${hint}.)`;
  return `**Waits (${waiting.kind}: ${waiting.code}${since}${until}${batch}).** ${advice(mirror, waiting)}${meaning}`;
}

function advice(mirror: string, waiting: Waiting): string {
  switch (waiting.kind) {
    case 'parked':
      return 'It needs an answer: see below.';
    case 'paused':
    case 'blocked':
      return `It needs ${neededWords(mirror, waiting) ?? 'nothing'}.`;
    default:
      return ADVICE[waiting.kind];
  }
}

/** What the guard asks, until when, and how to answer. */
function parkedInWords(
  mirror: string,
  { removals, held, code, shown, deadlineMs }: Parked,
): readonly string[] {
  const share = held === 0 ? '' : ` (${((removals / held) * 100).toFixed(1)} %)`;
  const counts = `it would remove ${removals} of ${held} members${share}`;
  const moved = isMoved(code) ? `it would ${movedWords(code)}; ${counts}` : counts;
  const what =
    code === 'unknown-baseline'
      ? 'it would replace whatever the target holds, for which nobody has vouched'
      : moved;
  const beyond = isMoved(code)
    ? `The mirror’s settings lead elsewhere than in its last run (${code}).`
    : `That is beyond the mirror’s \`safety\` limits (${code}).`;
  return [
    `### Parked by the guard: ${what}`,
    '',
    `${beyond} The run waits for an answer until ` +
      `**${new Date(deadlineMs).toISOString()}**; without one it counts as rejected.`,
    '',
    `- To let it happen: \`retl approve ${mirror}\`, or the update \`approve\``,
    `- To refuse it: \`retl reject ${mirror}\`, or the update \`reject\``,
    '',
    `Argument of both updates: \`{"shown": "${shown}"}\``,
  ];
}
