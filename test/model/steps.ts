/**
 * The session of a destination under the model's control: its opening and its finish, which it carries out at once, or takes
 * for later and sees to when somebody asks about them.
 */

import type { StepOutcome } from '../../src/destinations/port.ts';
import { type Answer, applies } from './answers.ts';

interface Step {
  state: 'taken' | 'done' | 'failed';
  carryOut(): void;
}

/** The destination that has them. */
interface Owner {
  readonly idempotent: boolean;
  /** Whether they are taken for later. */
  readonly slow: boolean;
  /** How it answers next. */
  answer(): Answer;
  violates(rule: string): void;
}

const ACCEPTED: StepOutcome = { kind: 'accepted', receipt: {} };
const LOST: StepOutcome = { kind: 'unknown', code: 'lost' };

export class Steps {
  readonly #steps = new Map<string, Step>();

  constructor(private readonly owner: Owner) {}

  /** A request for a step; `name` stands for it however often it is sent. */
  take(name: string, carryOut: () => void): StepOutcome {
    const answer = this.owner.answer();
    if (!applies(answer)) return refusal(answer);
    const before = this.#steps.get(name);
    const fresh = before === undefined || before.state === 'failed';
    if (!fresh && !this.owner.idempotent) this.owner.violates(`rule 10: ${name} was asked for twice`);
    const step: Step = fresh ? { state: 'taken', carryOut } : before;
    this.#steps.set(name, step);
    if (!this.owner.slow) carry(step);
    if (answer.kind === 'lost') return LOST;
    return step.state === 'done' ? ACCEPTED : pending(answer.kind === 'short' ? [] : [name]);
  }

  /** What has become of one that was taken for later; asked about well, it is done. */
  ask(name: string): StepOutcome {
    const answer = this.owner.answer();
    const step = this.#steps.get(name);
    if (step === undefined) {
      this.owner.violates('rule 10: a step was asked about that there is not');
      return LOST;
    }
    if (answer.kind === 'too-large') return pending([name]);
    if (step.state === 'taken' && answer.kind === 'refuse') step.state = 'failed';
    if (step.state === 'failed') return refusal({ kind: 'refuse' });
    if (!applies(answer)) return refusal(answer.kind === 'refuse' ? { kind: 'later' } : answer);
    carry(step);
    return answer.kind === 'lost' ? LOST : ACCEPTED;
  }

  /** What a look-up finds; null: nothing. */
  found(name: string): StepOutcome | null {
    const state = this.#steps.get(name)?.state ?? 'failed';
    if (state === 'failed') return null;
    return state === 'done' ? ACCEPTED : pending([name]);
  }

  /** A person does by hand what was only taken; false where there is nothing to be done. */
  complete(name: string): boolean {
    const step = this.#steps.get(name);
    if (step === undefined || step.state === 'failed') return false;
    carry(step);
    return true;
  }

  isDone(name: string): boolean {
    return this.#steps.get(name)?.state === 'done';
  }

  /** Whether something was taken, and has come to nothing yet. */
  get underWay(): boolean {
    return [...this.#steps.values()].some(({ state }) => state === 'taken');
  }
}

function carry(step: Step): void {
  if (step.state !== 'taken') return;
  step.state = 'done';
  step.carryOut();
}

function pending(jobIds: readonly string[]): StepOutcome {
  return { kind: 'pending', jobIds, receipt: { job: jobIds.join() } };
}

function refusal(answer: Answer): StepOutcome {
  switch (answer.kind) {
    case 'later':
    case 'too-large':
      return { kind: 'not-applied', code: 'http-429', retryAfterMs: null, tooLarge: false };
    case 'refuse':
      return { kind: 'refused', code: 'http-400', reason: 'no' };
    case 'misconfigured':
      return { kind: 'misconfigured', code: 'http-401', reason: 'no' };
    default:
      return LOST;
  }
}
