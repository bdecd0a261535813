/** The messages of the workflow `mirror`, defined once for the SDK; their words are in domain/messages.ts. */

import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import { type Decision, PROGRESS_QUERY, type Progress } from '../domain/messages.ts';

/** Stop launching, keep the sealed generation for the next run. */
export const cancelSignal = defineSignal('cancel');
/** End the logical run once what is unresolved has been reconciled. */
export const abortSignal = defineSignal('abort');
/** Stop launching until `resume`. */
export const pauseSignal = defineSignal('pause');
/** Go on after `pause`; also looks again at once at whatever the run waits for. */
export const resumeSignal = defineSignal('resume');
/** Look again at whatever the run waits for: an answer stands in the journal. A pause is not ended by it. */
export const lookSignal = defineSignal('look');
/** Ask about staged work at once, and not when its time has come. */
export const pollSignal = defineSignal('poll');

/** Let the removals happen that the guard asks about. */
export const approveUpdate = defineUpdate<void, [Decision]>('approve');
/** Close the run; nobody is removed. */
export const rejectUpdate = defineUpdate<void, [Decision]>('reject');

export const progressQuery = defineQuery<Progress>(PROGRESS_QUERY);
