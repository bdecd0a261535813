/** How a mirror stands before a run: its target, and the run that would come first. Read, never written. */

import { type RunId, runId, type TargetId, targetId } from '../domain/ids.ts';
import type { GuardCode, MovedCode } from '../domain/messages.ts';
import type { DiffCounts } from '../domain/plan.ts';
import type { Phase } from '../domain/run.ts';
import type { RouteHashes } from './admission.ts';
import {
  big,
  bigOrNull,
  bytesOrNull,
  flag,
  number,
  numberOrNull,
  one,
  type Row,
  text,
  textOrNull,
} from './decode.ts';
import { type Queryable, run } from './pool.ts';

export interface Standing {
  /** Of the mirror's first run; `null`: it has never run. */
  readonly strategy: string | null;
  /** `null`: the journal does not know this target, or knows it as another mirror's that does not own it. */
  readonly target: KnownTarget | null;
  readonly openRun: OpenRun | null;
}

export interface KnownTarget {
  readonly id: TargetId;
  readonly owner: string;
  /** Bytes: no removal payload that was ever sealed for it is longer. */
  readonly longestRemoval: number;
  /** Canonical JSON array of the promoted snapshot's key types; `null`: none was promoted. */
  readonly keyTypes: string | null;
  /** How it is known what it held before the first run; `null`: no run has looked. */
  readonly proof: 'verified' | 'attested' | 'unknown' | null;
  /** Members held; what closed runs had accepted since the last fold is not counted. */
  readonly held: number;
  /** How requests went there last, by hashes; `null`: nobody knows, or the key says all of it. */
  readonly route: RouteHashes | null;
  /** What identities mean there, as of the members that it holds; `null`: it holds none, or nobody has said. */
  readonly identityForm: string | null;
  /** Whether a run into it has ever completed. */
  readonly promoted: boolean;
}

export interface OpenRun {
  readonly run: RunId;
  readonly phase: Phase;
  readonly holder: string;
  readonly released: string | null;
  readonly reason: string | null;
  readonly unresolvedBatches: number;
  /** Milliseconds since the seal, by the journal's clock; `null`: nothing is sealed. */
  readonly sealedForMs: number | null;
  readonly members: number;
  /** It would replace what nobody has vouched for. */
  readonly replacesUnknown: boolean;
  /** Its requests would arrive elsewhere than those before it; `null`: they would not. */
  readonly moved: MovedCode | null;
  /** What the guard asks, or has asked; `null`: nothing. */
  readonly parked: {
    readonly code: GuardCode;
    readonly verdict: 'approved' | 'rejected' | null;
    /** Ms to answer in, by the journal's clock; 0 or less: too late. */
    readonly leftMs: number;
  } | null;
  /** `null` before it is compared with the membership. */
  readonly planned: DiffCounts | null;
  readonly safety: {
    readonly maxRemovalShare: number | null;
    readonly maxRemovals: number | null;
    readonly emptySnapshot: 'hold' | 'allow';
  };
}

const MIRROR = 'select mirror_id, strategy from retl.mirror where name = $1';

const TARGET = `
  select t.target_id, m.name as owner, t.longest_removal, g.key_types, t.baseline_proof as proof,
    t.held, t.credentials, t.removal_route,
    case when retl.holds_members(t.target_id) then t.identity_form end as identity_form,
    exists (select from retl.generation o where o.target_id = t.target_id and o.state in ('promoted', 'superseded')) as promoted
  from retl.target t join retl.mirror m using (mirror_id)
  left join retl.generation g on g.target_id = t.target_id and g.state = 'promoted'
  where t.target_key = $1 and (m.name = $2 or not retl.is_unowned(t.target_id))`;

const OPEN_RUN = `
  select r.run_id, r.phase, r.holder_namespace || '/' || r.holder_workflow_id as holder, r.released, r.reason,
    (select count(*) from retl.batch b where b.run_id = r.run_id and b.state in ('sending', 'unknown', 'staged'))
      as unresolved,
    floor(extract(epoch from clock_timestamp() - r.sealed_at) * 1000)::bigint as sealed_for,
    r.parked_code, (select a.verdict from retl.approval a where a.run_id = r.run_id and a.generation_digest = g.digest
      and a.removals = r.planned_removed and a.removal_digest = r.removal_digest) as verdict,
    ceil(r.approval_deadline_ms - extract(epoch from clock_timestamp() - r.parked_at) * 1000)::bigint as left_ms,
    coalesce(g.members, 0) as members, r.first_sequence is not null as is_planned, r.held_before, r.planned_added,
    r.planned_changed, r.planned_removed, r.planned_unchanged,
    case when r.refresh_after_ms is not null and r.strategy = 'snapshot-diff' then r.planned_refreshed end as planned_refreshed,
    r.max_removal_share, r.max_removals, r.empty_snapshot, r.replaces_unknown, r.moved
  from retl.run r left join retl.generation g on g.run_id = r.run_id and g.state <> 'discarded'
  where r.mirror_id = $1 and r.closing is null`;

/** @throws JournalError */
export async function standingOf(db: Queryable, mirror: string, targetKey: string): Promise<Standing> {
  const [known] = await run(db, MIRROR, [mirror]);
  const [target] = await run(db, TARGET, [targetKey, mirror]);
  const [open] = known === undefined ? [] : await run(db, OPEN_RUN, [big(known, 'mirror_id')]);
  return {
    strategy: known === undefined ? null : text(known, 'strategy'),
    target: target === undefined ? null : knownTarget(target),
    openRun: open === undefined ? null : openRun(open),
  };
}

const VOUCHED_ELSEWHERE = `
  select exists (select from retl.target t join retl.mirror m using (mirror_id) where m.name = $1 and t.target_key <> $2
    and t.baseline = $3 and t.baseline_proof = 'attested' and t.baseline_note = $4) as spent`;

/** Whether these words have vouched for another target of the mirror, as retl.record_baseline asks. @throws JournalError */
export async function vouchedElsewhere(
  db: Queryable,
  mirror: string,
  targetKey: string,
  { kind, attested }: { readonly kind: string; readonly attested: string | null },
): Promise<boolean> {
  if (attested === null) return false;
  return flag(one(await run(db, VOUCHED_ELSEWHERE, [mirror, targetKey, kind, attested])), 'spent');
}

const REMOVES_FROM = `
  select m.name from retl.target t join retl.mirror m using (mirror_id)
  where t.target_key = any ($2) and m.name <> $1 and not retl.is_unowned(t.target_id) limit 1`;

/** The mirror that owns one of these targets, as retl.admit asks; `null`: none but this one. @throws JournalError */
export async function ownerAmong(
  db: Queryable,
  mirror: string,
  targetKeys: readonly string[],
): Promise<string | null> {
  if (targetKeys.length === 0) return null;
  const [owner] = await run(db, REMOVES_FROM, [mirror, targetKeys]);
  return owner === undefined ? null : text(owner, 'name');
}

function knownTarget(row: Row): KnownTarget {
  const [credentials, removals] = [bytesOrNull(row, 'credentials'), bytesOrNull(row, 'removal_route')];
  return {
    id: targetId(big(row, 'target_id')),
    owner: text(row, 'owner'),
    longestRemoval: number(row, 'longest_removal'),
    keyTypes: textOrNull(row, 'key_types'),
    proof: textOrNull(row, 'proof') as KnownTarget['proof'],
    identityForm: textOrNull(row, 'identity_form'),
    promoted: flag(row, 'promoted'),
    held: number(row, 'held'),
    route: credentials === null || removals === null ? null : { credentials, removals },
  };
}

function openRun(row: Row): OpenRun {
  const sealedFor = bigOrNull(row, 'sealed_for');
  return {
    run: runId(big(row, 'run_id')),
    phase: text(row, 'phase') as Phase,
    holder: text(row, 'holder'),
    released: textOrNull(row, 'released'),
    reason: textOrNull(row, 'reason'),
    unresolvedBatches: number(row, 'unresolved'),
    sealedForMs: sealedFor === null ? null : Number(sealedFor),
    members: number(row, 'members'),
    replacesUnknown: flag(row, 'replaces_unknown'),
    moved: textOrNull(row, 'moved') as MovedCode | null,
    parked: parked(row),
    planned: flag(row, 'is_planned')
      ? {
          held: number(row, 'held_before'),
          added: number(row, 'planned_added'),
          changed: number(row, 'planned_changed'),
          removed: number(row, 'planned_removed'),
          unchanged: number(row, 'planned_unchanged'),
          ...(row.planned_refreshed === null ? {} : { refreshed: number(row, 'planned_refreshed') }),
        }
      : null,
    safety: {
      maxRemovalShare: numberOrNull(row, 'max_removal_share'),
      maxRemovals: numberOrNull(row, 'max_removals'),
      emptySnapshot: text(row, 'empty_snapshot') === 'allow' ? 'allow' : 'hold',
    },
  };
}

function parked(row: Row): OpenRun['parked'] {
  const code = textOrNull(row, 'parked_code');
  if (code === null) return null;
  const verdict = textOrNull(row, 'verdict');
  return {
    code: code as GuardCode,
    verdict: verdict === null ? null : (verdict as 'approved' | 'rejected'),
    leftMs: number(row, 'left_ms'),
  };
}

const NEWEST_RUN = `
  select r.run_id::text || '/' || r.epoch as stamp, r.closing is null and r.released is null as is_held
  from retl.run r join retl.mirror m using (mirror_id) where m.name = $1 order by r.run_id desc limit 1`;

/** Of a mirror's newest run: what changes with each of its attempts, and whether somebody holds it. */
export interface Moment {
  readonly stamp: string;
  readonly isHeld: boolean;
}

/** Two moments with one stamp, of which neither is held, have nothing sent between them. @throws JournalError */
export async function momentOf(db: Queryable, mirror: string): Promise<Moment> {
  const [row] = await run(db, NEWEST_RUN, [mirror]);
  return row === undefined
    ? { stamp: '', isHeld: false }
    : { stamp: text(row, 'stamp'), isHeld: flag(row, 'is_held') };
}

// A column privilege is not enough: who looks at counts may see neither settings nor members.
const MAY_READ_MEMBERS = `select has_table_privilege('retl.revision', 'select') as may`;

/** Whether the role may read members by their hashes: a reader's or a worker's. @throws JournalError */
export async function mayReadMembers(db: Queryable): Promise<boolean> {
  return flag(one(await run(db, MAY_READ_MEMBERS)), 'may');
}
