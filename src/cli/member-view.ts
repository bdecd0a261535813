/** One member's story in words. */

import type {
  Change,
  Did,
  MemberBatch,
  MemberOperation,
  QuietRuns,
  RunStory,
  StoryEntry,
  Verdict,
} from '../domain/member-story.ts';
import type { Explanation, MemberValues } from '../journal/explain.ts';
import type { Output } from './output.ts';
import { counted } from './problems-view.ts';
import { whole } from './progress-view.ts';
import { ago } from './run-view.ts';
import { harmless, valueWords } from './value-text.ts';

const OF: { readonly [C in Change]: string } = {
  add: 'addition',
  change: 'change',
  resend: 'resending',
  remove: 'removal',
};

export function verdictWords(verdict: Verdict): string {
  switch (verdict) {
    case 'held':
      return 'held';
    case 'removed':
      return 'removed';
    case 'left-out':
      return 'not held: no snapshot that can still be read has it';
    case 'removal-due':
      return 'held, and to be removed by the run that is open';
    case 'unknown':
      return 'not held, and nothing in the journal is about it';
    default: {
      const change = changeIn(verdict);
      return verdict.endsWith('-pending')
        ? `its ${OF[change]} is under way`
        : `its ${OF[change]} was refused by the destination`;
    }
  }
}

function changeIn(verdict: Verdict): Change {
  if (verdict.startsWith('add')) return 'add';
  if (verdict.startsWith('change')) return 'change';
  return verdict.startsWith('resend') ? 'resend' : 'remove';
}

const DID: { readonly [D in Did]: string } = {
  added: 'added',
  changed: 'changed',
  'sent-again': 'sent again, unchanged',
  removed: 'removed: the snapshot does not have it',
  rejected: 'rejected by the destination',
  refused: 'in a request that the destination refused as a whole',
  pending: 'under way',
  'never-sent': 'planned, but the run ended before it was applied',
  unchanged: 'unchanged',
  'left-out': 'not in the snapshot, and not held',
  'removal-due': 'not in the snapshot: to be removed after the additions, if the guard lets it',
  kept: 'not in the snapshot, but the run ended before its removals',
  'not-planned': 'in the snapshot; nothing was planned for it',
  'no-snapshot': 'the run sealed no snapshot',
  'rows-gone': 'its rows are gone: what it wanted is not known any more',
};

/** @param now ms since the epoch. */
export function showExplanation(output: Output, explanation: Explanation, now: number): void {
  const { held, verdict, values } = explanation;
  output.line(`${output.style('bold', 'member')}   ${explanation.identityHash}`);
  if (verdict !== null) output.line(`  stands   ${verdictWords(verdict)}`);
  if (held === null) output.line('  held     no');
  else {
    output.line(`  held     since ${held.since.toISOString()}, ${ago(held.since, now)}`);
    output.line(`           run ${held.runId}, log position ${held.position}, batch ${held.batch}`);
    output.line(`  payload  ${held.payloadHash}`);
  }
  if (values !== null) showValues(output, values);
  for (const entry of explanation.runs) showEntry(output, entry, values, now);
  if (explanation.next !== null) output.line(`  more     --after ${explanation.next}`);
}

function showValues(output: Output, values: MemberValues): void {
  if (values.identity !== null) output.line(`  identity ${harmless(values.identity)}`);
  if (values.held !== null) {
    output.line(`  holds    ${valueWords(values.held.payload)}`);
    output.line(`  removal  ${valueWords(values.held.removal)}`);
  }
  if (values.desired !== null) {
    const { runId, sourceKey, payload } = values.desired;
    output.line(`  wanted   by run ${runId}, row ${harmless(sourceKey)}: ${valueWords(payload)}`);
  }
}

function showEntry(output: Output, entry: StoryEntry, values: MemberValues | null, now: number): void {
  if (entry.kind === 'quiet') {
    output.line(quietLine(entry));
    return;
  }
  output.line(runLine(entry, now));
  if (entry.operation === null) return;
  const own = values?.operations.find((operation) => operation.runId === entry.runId) ?? null;
  for (const line of operationLines(entry.operation, now)) output.line(`           ${line}`);
  if (own === null) return;
  output.line(`           sends ${valueWords(own.payload)}`);
  if (own.rejection !== null) output.line(`           its words: ${harmless(own.rejection)}`);
  for (const batch of own.batches) {
    if (batch.receipt !== null) output.line(`           receipt: ${harmless(batch.receipt)}`);
    if (batch.refusal !== null) output.line(`           its words: ${harmless(batch.refusal)}`);
    if (batch.jobIds.length > 0) output.line(`           jobs: ${batch.jobIds.map(harmless).join(', ')}`);
    if (batch.because !== null) output.line(`           decided because: ${harmless(batch.because)}`);
  }
}

function quietLine({ firstRunId, lastRunId, runs, did, isInferred }: QuietRuns): string {
  const which = runs === 1 ? `run ${lastRunId}` : `runs ${firstRunId} to ${lastRunId} (${whole(runs)})`;
  return `  ${which}: ${DID[did]}${isInferred ? ', as follows from the completed run; its rows are gone' : ''}`;
}

function runLine(run: RunStory, now: number): string {
  const state = run.state === 'open' ? `open, ${run.phase}` : run.state;
  const code = run.code === null ? '' : `, ${run.code}`;
  const isTolerated = run.state === 'completed' && (run.did === 'rejected' || run.did === 'refused');
  const did = isTolerated ? `${DID[run.did]}; tolerated, and tried again by the next run` : DID[run.did];
  return `  run ${run.runId}: ${did}  (${state}${code}, ${ago(run.openedAt, now)})`;
}

function operationLines(operation: MemberOperation, now: number): readonly string[] {
  const { change, payloadHash, rejection } = operation;
  const lines = [`${OF[change]}${payloadHash === null ? '' : ` to payload ${payloadHash}`}`];
  if (operation.batches.length === 0) lines.push('in no request yet');
  lines.push(...operation.batches.map((batch) => batchWords(batch, now)));
  if (rejection !== null)
    lines.push(`rejected with ${rejection.code} at ${rejection.recordedAt.toISOString()}`);
  return lines;
}

function batchWords(batch: MemberBatch, now: number): string {
  const parts = [`batch ${batch.id} ${batch.state}`];
  if (batch.code !== null) parts.push(batch.code);
  if (batch.accepted !== null)
    parts.push(`${whole(batch.accepted)} of ${counted(batch.members, 'member')} accepted`);
  if (batch.position !== null) parts.push(`log position ${batch.position}`);
  const at = batch.settledAt ?? batch.sentAt ?? batch.preparedAt;
  parts.push(`${at.toISOString()}, ${ago(at, now)}`);
  if (batch.resolvedByOperator) parts.push('decided by an operator');
  return parts.join(', ');
}
