/** Commands that change what a run does: who may not is told so, and by which role it goes. */

import { EXIT } from './exit-codes.ts';
import { isDenied, Refusal } from './failures.ts';

/** Who is not let in by the journal is told what would let them. @throws Refusal `not-allowed`; what `work` throws */
async function allowed<T>(refusal: Refusal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isDenied(error) ? refusal : error;
  }
}

/** @param what to be read after "may not", e.g. `resolve a batch`. */
export function asWorker<T>(what: string, work: () => Promise<T>): Promise<T> {
  const remedy =
    'Use the worker’s role as `journal.url` (GRANT retl_runtime TO <role>): it is no right of people who only look or answer.';
  return allowed(new Refusal(EXIT.usage, 'not-allowed', `This role may not ${what}.`, remedy), work);
}

export function asApprover<T>(work: () => Promise<T>): Promise<T> {
  return allowed(answerNotAllowed(), work);
}

export function answerNotAllowed(): Refusal {
  return new Refusal(
    EXIT.usage,
    'not-allowed',
    'This role may not answer what the guard asks. Nothing was changed.',
    'Have it granted: GRANT retl_approver TO <role>; the role is that of `journal.url`.',
  );
}
