/**
 * Runs in the journal: attempts, seal, plan, guard, promotion and closing. Each function calls one
 * function of migrations/0002 or 0003, which holds the caller to the rules; this file only gives them types.
 */

import type pg from 'pg';
import { type Epoch, epoch, hexOf, type RunId, type Sha256, sha256, sha256FromHex } from '../domain/ids.ts';
import type { GuardCode, PlanRef } from '../domain/messages.ts';
import type { Closing } from '../domain/run.ts';
import type { Holder } from './admission.ts';
import { number, object, type Row, text } from './decode.ts';
import { call, type Queryable } from './pool.ts';

export { type Admission, type AdmitRequest, admit, type Holder, type Resume } from './admission.ts';

/** One attempt: every write of it names both (rule 9). */
export interface Attempt {
  readonly run: RunId;
  readonly epoch: Epoch;
}

/** Raises the run's epoch: every older attempt is refused from here on (rule 9). @throws JournalError */
export async function beginAttempt(
  db: Queryable,
  run: RunId,
  holder: Holder,
  step: string,
): Promise<Attempt> {
  const value = await call(db, 'retl.begin_attempt($1,$2,$3,$4,$5,$6)', [
    run,
    holder.namespace,
    holder.cluster,
    holder.workflowId,
    holder.firstRunId,
    step,
  ]);
  return { run, epoch: epoch(String(value)) };
}

/**
 * Notes how it is known that the target holds nothing of others. Resolves to `false`, with nothing noted, where the words of `note`
 * have vouched for another target of the mirror. @throws JournalError
 */
export async function recordBaseline(
  db: Queryable,
  a: Attempt,
  baseline: string,
  proof: 'verified' | 'attested' | 'unknown',
  note: string | null,
): Promise<boolean> {
  return (
    (await call(db, 'retl.record_baseline($1,$2,$3,$4,$5)', [a.run, a.epoch, baseline, proof, note])) === true
  );
}

export type SealResult =
  | { readonly kind: 'sealed' }
  /** Nothing has been sent. `keys` are the first few hashes, in hex: of identities where these conflict, else of source keys. */
  | {
      readonly kind: 'invalid';
      readonly code: string;
      readonly count: number;
      readonly keys: readonly string[];
    };

/** Byte limits are of the stored payload alone, without what the request puts around it. @throws JournalError */
export async function seal(
  db: Queryable,
  a: Attempt,
  maxUpsert: number,
  maxRemove: number,
): Promise<SealResult> {
  const answer = object(await call(db, 'retl.seal($1,$2,$3,$4)', [a.run, a.epoch, maxUpsert, maxRemove]));
  if (answer.kind === 'sealed') return { kind: 'sealed' };
  const keys = Array.isArray(answer.keys) ? answer.keys.map(String) : [];
  return { kind: 'invalid', code: text(answer, 'code'), count: number(answer, 'count'), keys };
}

/** Writes the additions of the run and counts its removals. @throws JournalError */
export async function plan(db: Queryable, a: Attempt): Promise<void> {
  await call(db, 'retl.plan($1,$2)', [a.run, a.epoch]);
}

/** What the guard says where the run may not go on: it is parked, or to be closed. */
export type GuardAnswer =
  | ({ readonly kind: 'held' } & Question)
  | { readonly kind: 'rejected' | 'expired'; readonly code: GuardCode };

/** What a parked run asks, and how long still. */
export interface Question {
  readonly code: GuardCode;
  readonly removals: number;
  /** Members held before the run. */
  readonly held: number;
  /** What an answer must name. */
  readonly shown: Sha256;
  /** Ms until the deadline, by the journal's clock. */
  readonly leftMs: number;
  /** The deadline itself, by the same clock: ms since the epoch. */
  readonly deadlineMs: number;
}

export type GuardResult =
  | { readonly kind: 'passed' }
  | GuardAnswer
  /** The saved plan is not what the run would do. */
  | { readonly kind: 'stale' }
  /** So many removals are over the byte limit of one operation. */
  | { readonly kind: 'oversized'; readonly count: number };

/** What whoever started the run has said beforehand. */
export interface Beforehand {
  readonly approveUpTo?: number | undefined;
  readonly plan?: PlanRef | undefined;
}

/** @throws JournalError; RangeError where a digest of the plan is none. */
export async function guard(db: Queryable, a: Attempt, said: Beforehand = {}): Promise<GuardResult> {
  const { approveUpTo, plan: saved } = said;
  const answer = object(
    await call(db, `retl.guard($1,$2,$3,decode($4, 'hex'),$5,decode($6, 'hex'))`, [
      a.run,
      a.epoch,
      approveUpTo ?? null,
      saved === undefined ? null : hexOf(sha256(saved.generation)),
      saved?.removals ?? null,
      saved === undefined ? null : hexOf(sha256(saved.removalDigest)),
    ]),
  );
  switch (answer.kind) {
    case 'passed':
      return { kind: 'passed' };
    case 'stale':
      return { kind: 'stale' };
    case 'oversized':
      return { kind: 'oversized', count: number(answer, 'count') };
    default:
      return guardAnswer(answer);
  }
}

function guardAnswer(answer: Row): GuardAnswer {
  const code = text(answer, 'code') as GuardCode;
  if (answer.kind === 'rejected' || answer.kind === 'expired') return { kind: answer.kind, code };
  const [removals, held] = [number(answer, 'removals'), number(answer, 'held')];
  const shown = sha256FromHex(text(answer, 'shown'));
  return {
    kind: 'held',
    code,
    removals,
    held,
    shown,
    leftMs: number(answer, 'left_ms'),
    deadlineMs: number(answer, 'deadline_ms'),
  };
}

/**
 * Rule 1: plans the removals; refused unless every addition is accepted. The guard looks again: `null` where they are planned.
 * @throws JournalError
 */
export async function beginRemovals(
  db: Queryable,
  a: Attempt,
  maxRemove: number,
): Promise<GuardAnswer | null> {
  const answer = object(await call(db, 'retl.begin_removals($1,$2,$3)', [a.run, a.epoch, maxRemove]));
  return answer.kind === 'planned' ? null : guardAnswer(answer);
}

/**
 * Rule 1: refused unless every removal is accepted. The guard looks again: `null` where the finish has begun.
 * @throws JournalError
 */
export async function beginFinish(db: Queryable, a: Attempt): Promise<GuardAnswer | null> {
  const answer = object(await call(db, 'retl.begin_finish($1,$2)', [a.run, a.epoch]));
  return answer.kind === 'passed' ? null : guardAnswer(answer);
}

/** Folds at most `batches` accepted batches of the target into its table; resolves to what is left. @throws JournalError */
export async function fold(db: Queryable, a: Attempt, batches: number): Promise<number> {
  return Number(await call(db, 'retl.fold($1,$2,$3)', [a.run, a.epoch, batches]));
}

/** @throws JournalError */
export async function promote(db: Queryable, a: Attempt): Promise<void> {
  await call(db, 'retl.promote($1,$2)', [a.run, a.epoch]);
}

/** Ends the run otherwise than by completing it; refused while anything is unresolved (rule 10). @throws JournalError */
export async function closeRun(
  db: Queryable,
  a: Attempt,
  closing: Exclude<Closing, 'completed'>,
  reason: string | null,
): Promise<void> {
  await call(db, 'retl.close_run($1,$2,$3,$4)', [a.run, a.epoch, closing, reason]);
}

/** Lets the open run go, so that the next execution takes it over without asking. @throws JournalError */
export async function releaseRun(
  db: Queryable,
  a: Attempt,
  how: 'cancelled' | 'failed',
  reason: string | null,
): Promise<void> {
  await call(db, 'retl.release_run($1,$2,$3,$4)', [a.run, a.epoch, how, reason]);
}

/** Drops at most `limit` superseded generations that nothing refers to; resolves to how many. @throws JournalError */
export async function prune(db: Queryable, id: RunId, limit: number): Promise<number> {
  return Number(await call(db, 'retl.prune($1,$2)', [id, limit]));
}

export type JournalPool = pg.Pool;
