/**
 * A run beyond its safety limits, and the updates that answer it (design.md section 4, Guard). The journal holds the question
 * and has the last word on every answer; here stands what is shown of it, so that an answer to anything else is refused at once.
 */

import { ApplicationFailure, CancellationScope, setHandler } from '@temporalio/workflow';
import type { DecideArgs, DecideResult, Held } from '../activities/results.ts';
import type { Carried, Decision, Parked } from '../domain/messages.ts';
import type { Control } from './control.ts';
import { approveUpdate, rejectUpdate } from './messages.ts';
import { decide } from './proxies.ts';

type Refusal = Extract<DecideResult, { kind: 'refused' }>['why'];

const REFUSED: { readonly [W in Refusal]: string } = {
  'not-parked': 'the run is not parked: there is nothing to approve or reject',
  stale: 'the run asks about another set of removals now: look again, and answer to what it shows',
  expired: 'the deadline has passed: the run is closed, and nobody is removed',
  answered: 'the other answer was given before: the first one stands',
  closed: 'the run is closed: there is nothing to approve or reject',
};

export class Parking {
  #parked: Parked | null;
  #run: string | null;

  constructor(
    carried: Carried | undefined,
    private readonly control: Control,
  ) {
    this.#parked = carried?.parked ?? null;
    this.#run = carried?.runId ?? null;
    const validator = (decision: Decision) => this.#validate(decision);
    setHandler(approveUpdate, (decision) => this.#answer('approved', decision), { validator });
    setHandler(rejectUpdate, (decision) => this.#answer('rejected', decision), { validator });
  }

  /** What the guard asks; `null` where it asks nothing. */
  get parked(): Parked | null {
    return this.#parked;
  }

  /** The guard asks, or asks the same again; resolves to the question. */
  asks(run: string, { code, removals, held, shown, leftMs, deadlineMs }: Held): Parked {
    // Clocks differ by a little: a question that stays the same keeps the deadline that was shown.
    const known = this.#parked?.shown === shown ? this.#parked : null;
    const parked = known ?? { code, removals, held, shown, deadlineMs: deadlineMs ?? Date.now() + leftMs };
    this.#parked = parked;
    this.#run = run;
    return parked;
  }

  /** It asks nothing any more. */
  clear(): void {
    this.#parked = null;
  }

  /** Looks only, and changes nothing. @throws ApplicationFailure: the update is refused, and leaves no trace. */
  #validate(decision: unknown): void {
    if (this.#parked === null) throw refusal('not-parked', REFUSED['not-parked']);
    const shown: unknown =
      typeof decision === 'object' && decision !== null ? Reflect.get(decision, 'shown') : null;
    if (typeof shown !== 'string')
      throw refusal('input', 'the argument is {"shown": "sha256:…"}, as the run shows it');
    if (shown !== this.#parked.shown) throw refusal('stale', REFUSED.stale);
  }

  async #answer(verdict: DecideArgs['verdict'], { shown }: Decision): Promise<void> {
    const args = { run: this.#run ?? '', shown, verdict };
    // Whoever answers is told what became of it, also where the run is cancelled meanwhile.
    const result = await CancellationScope.nonCancellable(() => decide(args));
    if (result.kind === 'refused') throw refusal(result.why, REFUSED[result.why]);
    this.control.look();
  }
}

function refusal(type: string, message: string): ApplicationFailure {
  return ApplicationFailure.create({ type, message, nonRetryable: true });
}
