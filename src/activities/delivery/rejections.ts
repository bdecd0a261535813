/**
 * What a rejection does to a window (rule 5). By default it stops the run, and nothing is divided. A run that goes on
 * delivers everything else, and has a request that was refused as a whole sent again in halves, to find the member to blame:
 * only where its adapter says that nothing was applied and that one of them may be, and within a bound.
 */

import type { BatchOutcome } from '../../destinations/port.ts';
import type { RejectionSettings } from '../../domain/settings.ts';
import type { Outgoing } from './outgoing.ts';

/** Requests of one run that may be divided: the halves of each are two more. One of 1,000 members takes ten. */
const MOST_DIVISIONS = 100; // the journal holds to the same (retl.mark_not_applied)

export type Refusal = Extract<BatchOutcome, { kind: 'refused' }>;

export class Rejections {
  /** Whether the window goes on after a rejection. */
  readonly goesOn: boolean;
  /** Refused as a whole, and to be sent again in halves. */
  readonly #toDivide: Outgoing[] = [];
  #left: number;

  /** `divided`: requests of the run that were, by this attempt or an earlier one. */
  constructor({ kind }: RejectionSettings, divided: number) {
    this.goesOn = kind !== 'stop';
    this.#left = MOST_DIVISIONS - divided;
  }

  /**
   * Whether the destination refused a member, or members one of whom is to blame, and the window goes on. Of a copy that was
   * sent again a refusal proves nothing (rule 3).
   */
  passes(outcome: BatchOutcome, { resent, request }: Outgoing): boolean {
    if (!this.goesOn || resent) return false;
    if (outcome.kind === 'refused') return outcome.divisible === true;
    return (
      outcome.kind === 'settled' ||
      (outcome.kind === 'not-applied' && outcome.tooLarge && request.operations.length === 1)
    );
  }

  /** Takes one of the divisions that are left: false where there is none, or nothing to divide. */
  takeDivision({ request }: Outgoing): boolean {
    if (request.operations.length === 1 || this.#left <= 0) return false;
    this.#left -= 1;
    return true;
  }

  divide(outgoing: Outgoing): void {
    this.#toDivide.push(outgoing);
  }

  /** The next request to be sent again in halves. */
  next(): Outgoing | null {
    return this.#toDivide.shift() ?? null;
  }
}

export function acceptsAll(outcome: BatchOutcome): boolean {
  if (outcome.kind === 'settled') return outcome.outcomes.every((one) => one.kind === 'accepted');
  return outcome.kind === 'accepted';
}
