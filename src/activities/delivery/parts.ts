/**
 * Answers that tell of some operations that they were not applied, and of the others what became of them (rule 4): the request is
 * parted there, and what was not applied goes again in requests of its own. Within bounds; beyond them it counts as rejected.
 */

import type { BatchOutcome, OperationOutcome } from '../../destinations/port.ts';
import type { BatchDraft } from '../../journal/batches.ts';
import type { Outgoing, RequestBuilder } from './outgoing.ts';

/** The journal holds to the same two. */
const MOST_SENDINGS = 5;
const MOST_PIECES = 100;

export type Settled = Extract<BatchOutcome, { kind: 'settled' }>;

/** Operations that follow one another, and of which the same is true. */
export interface Piece {
  readonly draft: BatchDraft;
  readonly applied: boolean;
}

/** A code of what was not applied; `null`: the answer says so of no operation. */
export function unappliedCode({ outcomes }: Settled): string | null {
  for (const one of outcomes) if (one.kind === 'not-applied') return one.code;
  return null;
}

/** @param mayPart whether the destination's uploads may stand in pieces. */
export function bounded(outgoing: Outgoing, settled: Settled, mayPart: boolean): Settled {
  const isWithin = outgoing.sending < MOST_SENDINGS && runsOf(settled.outcomes).length <= MOST_PIECES;
  if (mayPart && isWithin) return settled;
  return { ...settled, outcomes: settled.outcomes.map(givenUp) };
}

function givenUp(outcome: OperationOutcome): OperationOutcome {
  if (outcome.kind !== 'not-applied') return outcome;
  return { kind: 'rejected', code: outcome.code, reason: 'never applied, as often as it was sent' };
}

/** The pieces of the request, in order. */
export function piecesOf(
  builder: RequestBuilder,
  outgoing: Outgoing,
  { outcomes }: Settled,
): readonly Piece[] {
  const { operations } = outgoing.request;
  return runsOf(outcomes).map(({ from, end, applied }) => ({
    draft: builder.build(operations.slice(from, end), outgoing.first + BigInt(from), outgoing.sending).draft,
    applied,
  }));
}

interface Run {
  readonly from: number;
  readonly end: number;
  readonly applied: boolean;
}

function runsOf(outcomes: readonly OperationOutcome[]): readonly Run[] {
  const runs: Run[] = [];
  for (const [index, { kind }] of outcomes.entries()) {
    const applied = kind !== 'not-applied';
    const last = runs.at(-1);
    if (last?.applied === applied) runs[runs.length - 1] = { ...last, end: index + 1 };
    else runs.push({ from: index, end: index + 1, applied });
  }
  return runs;
}
