/** A batch in words: what a person must know of it before judging what became of it. */

import { assertNever } from '../domain/assert-never.ts';
import type { BatchView } from '../journal/resolve.ts';
import { counted } from './problems-view.ts';
import { span, whole } from './progress-view.ts';
import { ago } from './run-view.ts';

/** One line: for a list. `now` in ms since the epoch. */
export function batchLine(batch: BatchView, now: number): string {
  const sent = batch.sentAt === null ? '' : `, sent ${ago(batch.sentAt, now)}`;
  const reason = batch.reason === null ? '' : ` (${batch.reason})`;
  return `${batch.batch}  ${batch.state}: ${contents(batch)}${sent}${pollsOf(batch, now)}${reason}`;
}

/** Of a staged batch: how often its jobs were asked for, and when they will be again. */
function pollsOf({ state, polls, nextPollAt }: BatchView, now: number): string {
  if (state !== 'staged' || nextPollAt === null) return '';
  const next = nextPollAt.getTime() - now;
  return `, asked ${whole(polls)} times, ${next > 0 ? `next in ${span(next)}` : 'next at once'}`;
}

/** A line per fact. `now` in ms since the epoch. */
export function batchLines(batch: BatchView, now: number): readonly string[] {
  const lines = [
    `state     ${batch.state}${batch.reason === null ? '' : ` (${batch.reason})`}`,
    `contains  ${contents(batch)}`,
  ];
  if (batch.sentAt !== null) {
    const again = batch.resends === 0 ? '' : `, and ${whole(batch.resends)} times again`;
    lines.push(`sent      ${batch.sentAt.toISOString()}, ${ago(batch.sentAt, now)}${again}`);
  }
  if (batch.stagedAt !== null) {
    lines.push(
      `staged    ${batch.stagedAt.toISOString()}, ${ago(batch.stagedAt, now)}${pollsOf(batch, now)}`,
    );
  }
  if (batch.sendDeadline !== null) {
    const left =
      batch.deadlineLeftMs > 0
        ? `in ${span(batch.deadlineLeftMs)}: until then it may still arrive`
        : 'passed';
    lines.push(`deadline  ${batch.sendDeadline.toISOString()}, ${left}`);
  }
  return lines;
}

function contents({ action, members }: BatchView): string {
  switch (action) {
    case 'init':
      return 'the opening of the session';
    case 'finish':
      return 'the finish';
    case 'upsert':
      return counted(members ?? 0, 'addition or change', 'additions or changes');
    case 'remove':
      return counted(members ?? 0, 'removal');
    default:
      return assertNever(action);
  }
}
