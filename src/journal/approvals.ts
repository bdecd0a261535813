/**
 * What the guard asks of a parked run, and what people answer (design.md section 4, Guard). An answer is a row bound to the
 * digest of what was shown; the journal refuses one to anything else, one that comes too late, and a second, other one
 * (migrations/0002, `retl.decide`). Removals and finish look for the row again.
 */

import { hexOf, type RunId, runId, type Sha256, sha256FromHex } from '../domain/ids.ts';
import type { GuardCode } from '../domain/messages.ts';
import { big, date, flag, number, object, one, text } from './decode.ts';
import { call, type Queryable, run } from './pool.ts';
import { safeText } from './safe-text.ts';

export type ApprovalVerdict = 'approved' | 'rejected';

/** How the answer came: by the command line, or by an update of the workflow. */
export type ApprovalVia = 'cli' | 'update';

export interface Answer {
  readonly run: RunId;
  /** What was shown to whoever answers: {@link ParkedRun.shown}. */
  readonly shown: Sha256;
  readonly verdict: ApprovalVerdict;
  /** Who answers, at most 200 characters; kept in the journal, shown to `retl_reader` only. */
  readonly by: string;
  /** Why, in their words; kept like `by`. */
  readonly because: string | null;
  readonly via: ApprovalVia;
}

/** What became of an answer. Only `recorded` has changed anything. */
export type Decided =
  | { readonly kind: 'recorded' }
  /** The same verdict stands already. */
  | { readonly kind: 'repeated' }
  | { readonly kind: 'no-such-run' | 'not-parked' | 'expired' }
  | { readonly kind: 'closed'; readonly closing: string }
  /** The run asks about another set now. */
  | { readonly kind: 'stale'; readonly shown: Sha256 }
  /** The other verdict stands: the first answer is not overturned. */
  | { readonly kind: 'answered'; readonly verdict: ApprovalVerdict };

const LONGEST_NAME = 200;

/** @throws JournalError; also where `by` is empty. */
export async function decide(db: Queryable, answer: Answer): Promise<Decided> {
  const because = safeText(answer.because ?? '');
  const row = object(
    await call(db, `retl.decide($1,decode($2, 'hex'),$3,$4,$5,$6)`, [
      answer.run,
      hexOf(answer.shown),
      answer.verdict,
      safeText(answer.by.slice(0, LONGEST_NAME)),
      because === '' ? null : because,
      answer.via,
    ]),
  );
  const kind = text(row, 'kind') as Decided['kind'];
  switch (kind) {
    case 'closed':
      return { kind, closing: text(row, 'closing') };
    case 'stale':
      return { kind, shown: sha256FromHex(text(row, 'shown')) };
    case 'answered':
      return { kind, verdict: text(row, 'verdict') as ApprovalVerdict };
    default:
      return { kind };
  }
}

const MAY_ANSWER = `select has_function_privilege(p.oid, 'execute') as may from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'retl' and p.proname = 'decide'`;

/** Whether the role may answer what the guard asks: an approver's or a worker's. @throws JournalError */
export async function mayAnswer(db: Queryable): Promise<boolean> {
  const [row] = await run(db, MAY_ANSWER);
  return row !== undefined && flag(row, 'may');
}

/** An open run that the guard asks about, whoever holds it now. */
export interface ParkedRun {
  readonly run: RunId;
  readonly mirror: string;
  readonly code: GuardCode;
  readonly removals: number;
  /** Members held before the run. */
  readonly held: number;
  readonly toAdd: number;
  readonly toChange: number;
  /** What an answer must name. */
  readonly shown: Sha256;
  readonly parkedAt: Date;
  readonly deadline: Date;
  /** Ms until the deadline by the journal's clock; 0 or less once it has passed. */
  readonly leftMs: number;
  /** The answer that stands, where the run has not heeded it yet. */
  readonly verdict: ApprovalVerdict | null;
}

const PARKED = `
  select r.run_id, m.name as mirror, r.parked_code, r.planned_removed, r.held_before, r.planned_added, r.planned_changed,
    encode(s.shown, 'hex') as shown, r.parked_at,
    r.parked_at + r.approval_deadline_ms * interval '1 ms' as deadline,
    ceil(r.approval_deadline_ms - extract(epoch from clock_timestamp() - r.parked_at) * 1000)::bigint as left_ms,
    (select a.verdict from retl.approval a where a.run_id = r.run_id and a.shown = s.shown) as verdict
  from retl.run r join retl.mirror m using (mirror_id)
  cross join lateral (select retl.shown_digest(r.run_id) as shown) s
  where m.name = $1 and r.closing is null and r.parked_at is not null`;

/** `null` where no run of the mirror is parked. Needs no more than what `retl_inspector` may read. @throws JournalError */
export async function parkedRun(db: Queryable, mirror: string): Promise<ParkedRun | null> {
  const [row] = await run(db, PARKED, [mirror]);
  if (row === undefined) return null;
  return {
    run: runId(big(row, 'run_id')),
    mirror: text(row, 'mirror'),
    code: text(row, 'parked_code') as GuardCode,
    removals: number(row, 'planned_removed'),
    held: number(row, 'held_before'),
    toAdd: number(row, 'planned_added'),
    toChange: number(row, 'planned_changed'),
    shown: sha256FromHex(text(row, 'shown')),
    parkedAt: date(row, 'parked_at'),
    deadline: date(row, 'deadline'),
    leftMs: number(row, 'left_ms'),
    verdict: row.verdict === null ? null : (text(row, 'verdict') as ApprovalVerdict),
  };
}

const APPROVED_BY_INPUT = `
  select coalesce(sum(removals), 0) as removals from retl.approval where run_id = $1 and via = 'input'`;

/** How many removals of the run were approved by what it was started with (`approveUpTo`). @throws JournalError */
export async function approvedByInput(db: Queryable, id: RunId): Promise<number> {
  return number(one(await run(db, APPROVED_BY_INPUT, [id])), 'removals');
}
