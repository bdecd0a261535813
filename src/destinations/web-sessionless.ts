/** What a writer of an API without sessions answers: there is nothing to open, rejoin or clean up, and so no call is made. */

import type { StepOutcome } from './port.ts';

export const NO_CALL: StepOutcome = { kind: 'accepted', receipt: {} };

export abstract class SessionlessWriter {
  init(): Promise<StepOutcome> {
    return Promise.resolve(NO_CALL);
  }

  reconcileInit(): Promise<StepOutcome> {
    return Promise.resolve(NO_CALL);
  }

  attach(): Promise<StepOutcome> {
    return Promise.resolve(NO_CALL);
  }

  abort(): Promise<StepOutcome> {
    return Promise.resolve(NO_CALL);
  }
}
