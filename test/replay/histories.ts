/** The recorded histories, and what each is there for. */

import { historyText as textOf } from './replay-one.ts';

export const HISTORIES = [
  'completed', // every phase, with additions, changes and removals
  'continued', // ends by continue-as-new, after several waits
  'continuation', // what it continues as
  'cancelled', // the signal, while a request is in flight
  'resumed', // takes a sealed generation up, then goes on with a fresh run
  'cancelled-by-temporal', // in an extraction
  'discarded', // closes that extraction's run, then starts a fresh one
  'paused',
  'waiting', // open: a timer of an hour
  'blocked', // open: nothing but a message can wake it
  'aborted', // of the blocked run, once its batch was resolved
  'pending', // open: jobs are under way, asked about by timers
  'polled', // the same, asked about at once by a signal, to its end
  'pending-aborted', // an abort that waits for jobs
  'parked', // open: a timer until the deadline, or an answer
  'approved', // of the parked run, by an update
  'guard-rejected', // by an update
  'rejected',
] as const;

export type HistoryName = (typeof HISTORIES)[number];

/** The text of a history as Temporal's own tools write it. */
export async function historyText(name: HistoryName): Promise<string> {
  return textOf(`histories/${name}`);
}

interface RecordedEvent {
  readonly eventType?: string;
  readonly [attributes: string]: unknown;
}

export async function eventsOf(name: HistoryName): Promise<readonly RecordedEvent[]> {
  const { events } = JSON.parse(await historyText(name)) as { readonly events: readonly RecordedEvent[] };
  return events;
}
