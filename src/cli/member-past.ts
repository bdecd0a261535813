/**
 * What the log says of one member: an index answers what it knows, since it may know more than the journal has kept, and the
 * journal answers the rest. An index holds values: who may not read those asks the journal alone.
 */

import type { Source, ToldChange } from '../domain/ask-messages.ts';
import type { FoundChange } from '../domain/found.ts';
import type { TargetId } from '../domain/ids.ts';
import type { Explanation, MemberPast } from '../journal/explain.ts';
import { type AskAnswer, askIndexes, type PassedOver, passedLine } from './ask-work.ts';
import { type Project, readSettings } from './environment.ts';
import type { Journal } from './journal.ts';
import type { Output } from './output.ts';
import { ago } from './run-view.ts';

export interface Past {
  /** Since when it is held without a break; `null`: it is not held, or this role cannot be told. */
  readonly since: { readonly position: string; readonly at: string } | null;
  readonly sinceFrom: Source;
  /** Newest first. */
  readonly changes: readonly ToldChange[];
  readonly changesFrom: Source;
  readonly more: boolean;
}

type Passed = Omit<PassedOver, 'kind'>;

export interface Recalled {
  /** In the order of the members. */
  readonly pasts: readonly Past[];
  /** Each index that would not do, once. */
  readonly passed: readonly Passed[];
}

interface Asked {
  readonly mirror: string;
  readonly target: TargetId;
  readonly members: readonly Explanation[];
  /** Changes of each, at most. */
  readonly limit: number;
  /** Positions that an index may be behind. */
  readonly maxLag: number;
}

/** @throws as indexes and the journal do */
export async function recall(project: Project, journal: Journal, asked: Asked): Promise<Recalled> {
  const answers = await fromIndexes(project, journal, asked);
  const pasts: Past[] = [];
  for (const { identityHash } of asked.members) {
    const of = answers.filter((one) => 'identityHash' in one && one.identityHash === identityHash);
    const since = of.find((one) => one.kind === 'since');
    const changes = of.find((one) => one.kind === 'changes');
    const own =
      since === undefined || changes === undefined
        ? await fromJournal(journal, asked.target, identityHash, asked.limit)
        : null;
    pasts.push({ ...sinceOf(since, own), ...changesOf(changes, own) });
  }
  const passed = answers.flatMap((one) =>
    one.kind === 'passed-over' ? [{ index: one.index, code: one.code }] : [],
  );
  return {
    pasts,
    passed: passed.filter(({ index }, n) => passed.findIndex((one) => one.index === index) === n),
  };
}

async function fromIndexes(
  project: Project,
  journal: Journal,
  { mirror, target, members, limit, maxLag }: Asked,
): Promise<readonly AskAnswer[]> {
  const { indexes } = await readSettings(project);
  const { mayReadValues } = await import('../journal/explain.ts');
  if (indexes.length === 0 || members.length === 0 || !(await mayReadValues(journal))) return [];
  const hashes = members.map(({ identityHash }) => identityHash);
  return askIndexes(project, { kind: 'recall', mirror, target: `${target}`, hashes, limit, maxLag });
}

async function fromJournal(
  journal: Journal,
  target: TargetId,
  identityHash: Explanation['identityHash'],
  limit: number,
): Promise<MemberPast> {
  const { pastOf } = await import('../journal/explain.ts');
  return pastOf(journal, target, identityHash, limit);
}

function sinceOf(
  told: Extract<AskAnswer, { kind: 'since' }> | undefined,
  own: MemberPast | null,
): Pick<Past, 'since' | 'sinceFrom'> {
  if (told !== undefined) return { since: told.since, sinceFrom: told.source };
  const since = own?.since ?? null;
  return {
    since: since === null ? null : { position: `${since.position}`, at: since.at.toISOString() },
    sinceFrom: journalSource(own),
  };
}

function changesOf(
  told: Extract<AskAnswer, { kind: 'changes' }> | undefined,
  own: MemberPast | null,
): Pick<Past, 'changes' | 'changesFrom' | 'more'> {
  if (told !== undefined) return { changes: told.changes, changesFrom: told.source, more: told.more };
  return {
    changes: (own?.changes ?? []).map(toldChange),
    changesFrom: journalSource(own),
    more: own?.more ?? false,
  };
}

function toldChange({ action, position, at, run, payloadHash }: FoundChange): ToldChange {
  return { action, position: `${position}`, at: at.toISOString(), runId: `${run}`, payloadHash };
}

function journalSource(own: MemberPast | null): Source {
  return { index: null, position: `${own?.position ?? 0n}`, lag: { positions: '0', ms: 0 } };
}

export function passedWords(passed: readonly Passed[]): string {
  return passed.map(passedLine).join('\n');
}

const WORDS: { readonly [A in ToldChange['action']]: string } = {
  add: 'added',
  change: 'changed',
  remove: 'removed',
  held: 'held; what was before has been compacted away',
};

/** @param now ms since the epoch */
export function showPast(output: Output, past: Past, now: number): void {
  const { since, sinceFrom, changes, changesFrom, more } = past;
  if (since !== null) {
    const at = `${since.at}, ${ago(new Date(since.at), now)}, log position ${since.position}`;
    output.line(`  unbroken since ${at} (${from(sinceFrom)})`);
  }
  if (changes.length === 0) return;
  output.line(`  changes  ${from(changesFrom)}`);
  for (const { action, at, runId, position } of changes)
    output.line(`           ${at} ${WORDS[action]}, run ${runId}, log position ${position}`);
  if (more) output.line('           and earlier ones: --limit');
}

function from({ index, position, lag }: Source): string {
  const behind = lag.positions === '0' ? '' : `, ${lag.positions} behind`;
  return `${index === null ? 'the journal' : `index ${index}`}, as of ${position}${behind}`;
}
