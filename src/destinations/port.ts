/**
 * The port of every destination system (design.md section 9). An adapter sees requests, never the journal: no
 * database handle, no snapshot, no diff.
 */

import type { z } from 'zod';
import type { BatchId, Epoch } from '../domain/ids.ts';
import type { Action, Operation, RequestFrame } from '../domain/request.ts';
import type { Listing } from './listing.ts';
import type { Route } from './route.ts';

export type { Action, Operation, RequestFrame } from '../domain/request.ts';

/** One request, whose body is durable before it is given to the adapter. */
export interface BatchRequest {
  readonly batchId: BatchId;
  readonly action: Action;
  /** The same for every sending of the same bytes; use it as the provider's idempotency key. */
  readonly idempotencyKey: string;
  readonly operations: readonly Operation[];
  readonly body: string;
}

/** Stable, value-free reason of an answer: `http-429`, `reply-lacks-ids`, `connection-reset`, … */
export type ReasonCode = string;

export type OperationOutcome =
  | { readonly kind: 'accepted' }
  /** `reason` is the provider's own words: it is kept in the journal and shown by `retl rejections` only. */
  | { readonly kind: 'rejected'; readonly code: ReasonCode; readonly reason: string }
  /** Provably never looked at. It goes again in the same run, in another request, a few times; then it counts as rejected. */
  | { readonly kind: 'not-applied'; readonly code: ReasonCode };

/** The provider's answer, kept in the journal. Never logged. Must be JSON. */
export type Receipt = { readonly [key: string]: unknown };

/** When to ask about a job again, at the earliest, in ms from now; the core backs off from there. Absent: its own cadence. */
export type PollAfterMs = number;

/** What an adapter may answer to a batch. Foreseen results are returned; throwing is for bugs. */
export type BatchOutcome =
  /** One outcome per operation, in the order of the request, each attributed by id. */
  | { readonly kind: 'settled'; readonly outcomes: readonly OperationOutcome[]; readonly receipt: Receipt }
  /** Every operation is accepted, and the answer says so of this very request. */
  | { readonly kind: 'accepted'; readonly receipt: Receipt }
  /** Taken for asynchronous work; at least one job id, and none empty. Not an acceptance. */
  | {
      readonly kind: 'staged';
      readonly jobIds: readonly string[];
      readonly receipt: Receipt;
      readonly pollAfterMs?: PollAfterMs;
    }
  /** Provably nothing was applied, and trying again makes sense (429, 413, refused connection, …). */
  | {
      readonly kind: 'not-applied';
      readonly code: ReasonCode;
      /** The provider's own delay, in ms from now; `null` where it gave none. */
      readonly retryAfterMs: number | null;
      /** The request is too large: halve it. */
      readonly tooLarge: boolean;
    }
  /** Provably nothing was applied, and the same request can never succeed (400, 422, …). Names no operation. */
  | {
      readonly kind: 'refused';
      readonly code: ReasonCode;
      readonly reason: string;
      /** One operation may be to blame for all: halves may be tried, to isolate it. Absent: they may not. */
      readonly divisible?: boolean;
    }
  /** Provably nothing was applied, and configuration must change first (401, 403, missing privilege, …). */
  | { readonly kind: 'misconfigured'; readonly code: ReasonCode; readonly reason: string }
  /** Neither accepted nor absent. Whatever is not one of the above. */
  | {
      readonly kind: 'unknown';
      readonly code: ReasonCode;
      /**
       * From `reconcileBatch` of a `lookup` adapter, or from `reconcileInit` and `reconcileFinish` of any: the question itself got
       * no usable answer (a time-out, 5xx, 401, a page), and is asked again in a while. Absent: asking again would bring the same, and a person decides.
       */
      readonly unanswered?: true;
    };

/**
 * Answer of `poll`. `accepted`, `settled` and `refused` say what the jobs came to; `refused`: they ended and nothing was
 * applied. `staged`: they are under way, under the same ids. Whatever else (`not-applied`, `misconfigured`, `unknown`)
 * says of the question only that it went unanswered: the batch stays staged, and nothing is ever sent again for it.
 */
export type PollOutcome =
  | BatchOutcome
  /**
   * The provider knows no such job, or says that it ended and not what was applied: asking again would bring the same. That
   * proves nothing: the run is blocked, and the batch is named.
   */
  | { readonly kind: 'missing'; readonly code: ReasonCode };

/** Answer of `init`, `finish` and `abort`; `refused`, `misconfigured` and `unknown` as for batches. */
export type StepOutcome =
  | { readonly kind: 'accepted'; readonly receipt: Receipt }
  | {
      readonly kind: 'pending';
      readonly jobIds: readonly string[];
      readonly receipt: Receipt;
      readonly pollAfterMs?: PollAfterMs;
    }
  | Extract<BatchOutcome, { kind: 'not-applied' | 'refused' | 'misconfigured' | 'unknown' }>;

/** Of a step that is asked about; `missing` as for batches, of the jobs of one that is pending. */
export type StepFound = StepOutcome | Extract<PollOutcome, { kind: 'missing' }>;
/** A day: what stands for a request that may take for ever. */
export const UNBOUNDED_MS = 86_400_000;

export interface Capabilities {
  readonly strategies: readonly ('snapshot-diff' | 'native-replace')[];
  readonly explicitRemoval: boolean;
  readonly batchDelivery: 'accepted' | 'asynchronous';
  /** `idempotent`: the same request twice equals once; `lookup`: `reconcileBatch` can ask; `manual`: neither. */
  readonly recovery: 'idempotent' | 'lookup' | 'manual';
  /** Of `idempotent`: what is said of each operation of the last copy holds for every copy (docs/writing-an-adapter.md). */
  readonly lastCopyDecides?: boolean;
  readonly visible: 'on_accept' | 'at_finish';
  readonly maxRows: number; // bounds of the provider; the mirror's own `batch` settings may be lower
  readonly maxBytes: number;
  readonly maxInFlight: number;
  /** Batches that may be staged at once: jobs that the provider keeps for one account. Absent: no bound. */
  readonly maxStaged?: number;
  /**
   * How long one call of the writer that sends may take in all, in ms: time-outs, token exchanges and second tries within
   * it included. Nothing reaches the provider later than that. A time with no bound is given as {@link UNBOUNDED_MS}.
   */
  readonly longestRequestMs: number;
  /** How the target compares identities; applied before hashing the identity, never to what is sent. `text`: 1 and "1" are one. */
  readonly identityFolding: readonly ('case' | 'nfc' | 'nfkc' | 'text')[];
  readonly lists?: boolean; // its writers can `list`
}

export interface Logger {
  /** `fields` are names, ids, codes and counts; never values. */
  info(message: string, fields?: { readonly [key: string]: string | number | boolean }): void;
  warn(message: string, fields?: { readonly [key: string]: string | number | boolean }): void;
}

/**
 * The adapter's small key-value store. Writes are buffered and commit with the receipt. Keys have up to 512 UTF-16 units, values
 * up to 1,048,576; what is longer, or is no well-formed text without U+0000, makes `set` throw.
 */
export interface Store {
  get(key: string): string | undefined;
  set(key: string, value: string): void;
  delete(key: string): void;
}

/** Field names that one member rule gives: what `preflight` can check before any request. */
export interface MappedFields {
  readonly identity: readonly string[];
  readonly payload: readonly string[]; // without those of the identity
}

export interface WriterContext {
  /** Raised only after the drain limit; a request in flight is otherwise left to finish. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly store: Store;
  /** Fencing token: strictly increasing over all attempts on this journal. */
  readonly epoch: Epoch;
  /** Random id of the journal's log and the mirror's name: who owns what is written. */
  readonly owner: string;
  /** Whose target it was before, and who have sent nothing to it: a fence that they have left may be taken. */
  readonly formerOwners?: readonly string[];
  /** Number of the logical run, in all its attempts: an adapter names a run's own things by it. Absent where nothing is written. */
  readonly run?: string;
  /** Names of the mapped fields, one entry per member rule; absent where the mapping is a module. */
  readonly fields?: readonly MappedFields[];
  /**
   * Commits `value` at once, between the steps of a request that takes several; it is given back exactly. At most 1 MiB.
   * @throws Error where it could not be committed: whatever it tells of must not be done then
   */
  progress(batch: BatchId, value: string): Promise<void>;
  now(): number; // ms since the epoch; the only clock an adapter may use
}

/** Result of looking at a target before the first write. */
export type EmptyCheck =
  | { readonly kind: 'empty' | 'not-empty' }
  /** The adapter has no way to look: an operator must attest it. */
  | { readonly kind: 'cannot-look' }
  /** It answered, and the settings do not say how to read that: asking again would change nothing. */
  | { readonly kind: 'misconfigured'; readonly code: ReasonCode }
  /** It may answer later. */
  | { readonly kind: 'failed'; readonly code: ReasonCode };

/** One problem found by `preflight`, for the user: no values, no secrets. */
export interface PreflightProblem {
  readonly code: ReasonCode;
  readonly message: string;
  readonly remedy: string;
  /** It may pass by itself (a server that is down or busy): a run waits for that instead of ending. */
  readonly transient?: boolean;
}

export interface Writer {
  /** Checks rights and reachability without a write; an empty list means ready. */
  preflight(): Promise<readonly PreflightProblem[]>;
  checkEmpty(): Promise<EmptyCheck>; // is the target new and empty?
  init(): Promise<StepOutcome>; // opens the provider session of a run (and takes the fence, where there is one)
  /** Finds out what became of an `init` whose answer was lost, or is pending; must never open a second session. */
  reconcileInit(receipt?: Receipt | null): Promise<StepFound>;
  /** Rejoins the session of an earlier attempt, before anything is sent in it; must never open a second one. */
  attach(initReceipt: Receipt): Promise<StepOutcome>;
  upsert(request: BatchRequest): Promise<BatchOutcome>;
  remove(request: BatchRequest): Promise<BatchOutcome>;
  /** Asks for the outcome of staged jobs; must not begin one. `progress` as for {@link reconcileBatch}. */
  poll(
    request: BatchRequest,
    jobIds: readonly string[],
    receipt: Receipt,
    progress?: string | null,
  ): Promise<PollOutcome>;
  finish(request: FinishRequest): Promise<StepOutcome>;
  /**
   * Finds out what became of a request whose answer was lost. An `idempotent` adapter sends it again and answers for that
   * copy: its refusal is not taken for proof about the first one (rule 3), nor are its rejections without `lastCopyDecides`.
   * A `lookup` adapter answers for the request itself. `progress`: what {@link WriterContext.progress} was last given for it.
   */
  reconcileBatch(
    request: BatchRequest,
    receipt: Receipt | null,
    progress?: string | null,
  ): Promise<BatchOutcome>;
  /** Finds out what became of a finish whose answer was lost, or is pending: then `receipt` is that of the last answer. */
  reconcileFinish(request: FinishRequest, receipt: Receipt | null): Promise<StepFound>;
  /** Cleans up what the run opened; called only when nothing is sending, staged or unknown. */
  abort(): Promise<StepOutcome>;
  /**
   * Native replacement: removes what promoted finishes have superseded and no reader needs any more, one bounded step a
   * call. Called after a promotion, and by maintenance; never needed for the next run, so that whatever it answers is no
   * failure of a run.
   */
  tidy?(): Promise<Tidied>;
  /** Tells what the target holds, without a change to it, and without a session; absent unless it is declared. */
  list?(): Listing;
  close(): Promise<void>; // frees connections; safe to call more than once
}

/** `more`: call again; `failed`: not now. */
export type Tidied =
  | { readonly kind: 'done' | 'more' }
  | { readonly kind: 'failed'; readonly code: ReasonCode };

/** What the journal knows about the set that a finish concludes. */
export interface FinishRequest {
  readonly batchId: BatchId;
  readonly idempotencyKey: string;
  readonly generation: string;
  readonly members: number;
  readonly digest: string;
  /**
   * Native replacement: the accepted uploads of the run in the order of the sealed members, read as they are asked for; the
   * same whenever they are read again. No part of what is hashed as the request, which `generation` and `digest` stand for.
   */
  uploads?(): AsyncIterable<AcceptedUpload>;
}

/** One accepted upload of the run that a finish concludes. */
export interface AcceptedUpload {
  readonly batchId: BatchId;
  readonly members: number; // accepted ones
  /** The adapter's own answer; `{resolved: 'accepted'}` where a person has vouched for the upload instead. */
  readonly receipt: Receipt;
}

/** The port. `Connection` and `Options` are what the two zod schemas give. */
export interface DestinationAdapter<Connection = unknown, Options = unknown> {
  readonly type: string;
  readonly connectionSchema: z.ZodType<Connection>;
  readonly optionsSchema: z.ZodType<Options>;
  capabilities(connection: Connection, options: Options): Capabilities;
  /** Names what is mirrored into, from resolved settings, never from the connection's name. No secret in it. */
  targetKey(connection: Connection, options: Options): string;
  /**
   * Pure: canonical text of the options that decide what a payload becomes at the destination (method, body, column names);
   * the target key's own are left out. A change of it sends every member again. Absent or empty: nothing but the payload decides.
   */
  writeForm?(options: Options): string;
  /** Pure. `written`: the connection as configured, secrets by reference. Absent: the key says all of it. */
  route?(connection: Connection, options: Options, written: { readonly [key: string]: unknown }): Route;
  /**
   * Pure: canonical text of where the target keeps the fields of identities (`null`: of a module). While members are held that were
   * accepted under another one, runs are refused: stored removals would not fit, or would hit others. Absent or empty: nowhere.
   */
  identityForm?(options: Options, identity: readonly string[] | null): string;
  frame(action: Action, options: Options): RequestFrame; // pure: how a request body is framed
  /** Cross-checks options against the names of the mapped fields; returns problems in words. */
  checkFields(options: Options, identity: readonly string[], payload: readonly string[]): readonly string[];
  /** Pure: what is valid, but will probably not do what its author expects; in words, with the remedy. Shown by `retl check`. */
  hints?(options: Options): readonly string[];
  /** Where the provider has some: each member is held to them before the seal, and refused also where one would alter it. */
  payloadSchemas?(options: Options): { readonly upsert: z.ZodType; readonly remove: z.ZodType } | undefined;
  open(connection: Connection, options: Options, context: WriterContext): Promise<Writer>;
}
