/** A run of another environment or project in the same Temporal namespace: it is left alone, and the person told why. */

import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';

export interface ForeignRun {
  readonly workflowId: string;
  /** Whose workers work on it. */
  readonly taskQueue: string;
}

export function foreignWords({ workflowId, taskQueue }: ForeignRun): string {
  return `workflow ${workflowId} runs on task queue ${taskQueue}, which is another environment’s or project’s: it was left alone`;
}

/** @param name of the mirror, or of the index where `what` says so */
export function foreignRefusal(
  name: string,
  foreign: ForeignRun,
  what: 'mirror' | 'index' = 'mirror',
): Refusal {
  return new Refusal(
    EXIT.refused,
    'other-queue',
    `${name}: ${foreignWords(foreign)}.`,
    `Choose its environment with --env, or its folder with --project. Environments that share a namespace cannot run one ${what} at once.`,
  );
}
