/** What an author gives the conformance kit: the adapter, its target, and how that target can be made to misbehave. */

import type { JsonObject, Member } from '../domain/member.ts';
import type { DestinationAdapter, WriterContext } from './port.ts';

export interface Target<Connection, Options> {
  readonly connection: Connection;
  readonly options: Options;
}

/** What the target does to the next request. */
export type ConformanceFault =
  /** The request takes full effect, and its answer never arrives. */
  | 'answer-lost'
  /** Nothing is applied, and the answer says so in a way that the adapter declares as *nothing applied*. */
  | 'nothing-applied'
  /** The first operation is refused, the others are applied; the answer says so by id. */
  | 'reject-first'
  /** All is applied; the answer lacks one id, repeats one, or adds one that was not sent. */
  | 'reply-lacks-id'
  | 'reply-repeats-id'
  | 'reply-adds-id'
  /** As `reject-first`, with the ids of the answer in another order than the request's. */
  | 'reply-shuffled'
  /** The next finish takes full effect, and its answer never arrives. */
  | 'finish-lost'
  /** No answer for as long as the check runs. */
  | 'never-answers'
  /** Asynchronous: the next job is still running when it is asked about first, and ends after that. */
  | 'job-runs-on'
  /** Asynchronous: the next job ends well and tells of no operation. */
  | 'job-tells-nothing'
  /** Asynchronous: the next question about a job gets no usable answer (a time-out, 5xx, 401, a page). */
  | 'poll-fails'
  /** Asynchronous: to the next question about a job the target says that it knows no such job. */
  | 'job-unknown';

export interface ConformanceHarness<Connection = unknown, Options = unknown>
  extends Target<Connection, Options> {
  readonly adapter: DestinationAdapter<Connection, Options>;
  /** Other ways to write the same target, and targets that are others. */
  readonly sameTargets: readonly Target<Connection, Options>[];
  readonly otherTargets: readonly Target<Connection, Options>[];
  /** A place where nothing listens. */
  readonly unreachable: Target<Connection, Options>;
  /** Texts that must never stand in a target key, a receipt, a code or a reason. */
  readonly secrets: readonly string[];
  /** The n-th member, n from 1; `variant` changes the upsert payload and nothing else. */
  member(n: number, variant: number): Member;
  /** Names of the members' fields, as a mapping by rules would tell them to a writer; absent: they are not known. */
  readonly fields?: WriterContext['fields'];
  /** The upsert payloads that the target holds now, as the adapter stored them; in any order. */
  held(): Promise<readonly JsonObject[]>;
  /** Request bodies that have reached the target since `reset`, byte for byte; absent where nobody can see them. */
  readonly bodies?: () => Promise<readonly string[]>;
  /** Asynchronous: jobs begun since `reset`; absent where nobody can count them. */
  readonly jobs?: () => number | Promise<number>;
  /** Makes the target new and empty, with no fault armed. */
  reset(): Promise<void>;
  /** The faults that can be provoked: each arms the next request. */
  readonly faults: { readonly [Fault in ConformanceFault]?: () => void | Promise<void> };
}

export interface ConformanceCheck {
  readonly name: string;
  /** @throws Error that says what was expected of the adapter; never with a secret. */
  run(): Promise<void>;
}
