/** What the journal knows of one run: its record, and its counts over all its attempts. */

import {
  type RevisionId,
  type RunId,
  revisionId,
  runId,
  type Sha256,
  sha256FromHex,
  type TargetId,
  targetId,
} from '../domain/ids.ts';
import type { Closing, Phase, RunCounts } from '../domain/run.ts';
import { big, bigOrNull, date, flag, number, one, text, textOrNull, texts } from './decode.ts';
import { type Queryable, run } from './pool.ts';

export interface RunRecord {
  readonly run: RunId;
  readonly mirror: string;
  readonly target: TargetId;
  readonly targetKey: string;
  readonly revision: RevisionId;
  readonly settings: string;
  readonly strategy: 'snapshot-diff' | 'native-replace';
  readonly phase: Phase;
  readonly closing: Closing | null;
  readonly baseline: string | null;
  readonly logId: string;
  readonly generation: bigint | null;
  readonly generationDigest: Sha256 | null;
  readonly members: number;
  /** Sequence numbers of the operations; `null` before the plan. */
  readonly firstSequence: bigint | null;
  readonly additionsEnd: bigint | null;
  readonly removalsEnd: bigint | null;
  readonly operationsHoldBytes: boolean;
  /** How identities of the target have been folded, newest way first (RowProof). */
  readonly identityFoldings: readonly string[];
  /** Mirrors that the target was taken from, since they had sent nothing to it. */
  readonly formerOwners: readonly string[];
  readonly held: number;
  /** Milliseconds since it was opened, by the journal's clock. */
  readonly ageMs: number;
  /** Whether a request is sending, staged or unknown. */
  readonly unresolved: boolean;
  /** Whether an earlier attempt has noted why it could not go on. */
  readonly noted: boolean;
}

const RUN = `
  select r.run_id, m.name as mirror, r.target_id, t.target_key, r.revision_id, v.settings, r.strategy, r.phase,
    r.closing, t.baseline, (select log_id::text from retl.journal) as log_id, g.generation_id,
    encode(g.digest, 'hex') as digest, coalesce(g.members, 0) as members, r.first_sequence, r.additions_end,
    r.removals_end, coalesce(r.operations_hold_bytes, false) as holds_bytes, t.held,
    t.identity_foldings, t.former_owners, floor(extract(epoch from clock_timestamp() - r.opened_at) * 1000)::bigint as age_ms,
    exists (select from retl.batch b where b.run_id = r.run_id and b.state in ('sending', 'unknown', 'staged'))
      as unresolved, r.wait_kind is not null as noted
  from retl.run r
  join retl.mirror m using (mirror_id)
  join retl.target t on t.target_id = r.target_id
  join retl.revision v using (revision_id)
  left join retl.generation g on g.run_id = r.run_id and g.state <> 'discarded'
  where r.run_id = $1`;

/** @throws JournalError; Error when there is no such run. */
export async function loadRun(db: Queryable, id: RunId): Promise<RunRecord> {
  const row = one(await run(db, RUN, [id]));
  const digest = textOrNull(row, 'digest');
  return {
    run: runId(big(row, 'run_id')),
    mirror: text(row, 'mirror'),
    target: targetId(big(row, 'target_id')),
    targetKey: text(row, 'target_key'),
    revision: revisionId(big(row, 'revision_id')),
    settings: text(row, 'settings'),
    strategy: text(row, 'strategy') === 'native-replace' ? 'native-replace' : 'snapshot-diff',
    phase: text(row, 'phase') as Phase,
    closing: textOrNull(row, 'closing') as Closing | null,
    baseline: textOrNull(row, 'baseline'),
    logId: text(row, 'log_id'),
    generation: bigOrNull(row, 'generation_id'),
    generationDigest: digest === null ? null : sha256FromHex(digest),
    members: number(row, 'members'),
    firstSequence: bigOrNull(row, 'first_sequence'),
    additionsEnd: bigOrNull(row, 'additions_end'),
    removalsEnd: bigOrNull(row, 'removals_end'),
    operationsHoldBytes: flag(row, 'holds_bytes'),
    identityFoldings: texts(row, 'identity_foldings'),
    formerOwners: texts(row, 'former_owners'),
    held: number(row, 'held'),
    ageMs: number(row, 'age_ms'),
    unresolved: flag(row, 'unresolved'),
    noted: flag(row, 'noted'),
  };
}

const COUNTS = `
  select coalesce(g.source_rows, 0) as source_rows, coalesce(g.members, 0) as members, coalesce(g.excluded, 0) as excluded,
    coalesce(r.planned_added, 0) as to_add, coalesce(r.planned_changed, 0) as to_change,
    coalesce(r.planned_removed, 0) as to_remove, coalesce(r.planned_unchanged, 0) as unchanged,
    coalesce(sum(b.added) filter (where b.action = 'upsert' and b.state = 'settled'), 0) as added,
    coalesce(sum(b.changed) filter (where b.action = 'upsert' and b.state = 'settled'), 0) as changed,
    coalesce(sum(b.accepted) filter (where b.action = 'remove'), 0) as removed,
    coalesce(sum(case when b.divisible then upper(b.operations) - lower(b.operations) else b.rejected end), 0) as rejected,
    case when r.refresh_after_ms is not null and r.strategy = 'snapshot-diff' then r.planned_refreshed end as to_refresh,
    coalesce(sum(b.accepted - b.added - b.changed) filter (where b.action = 'upsert' and b.state = 'settled'), 0)
      as refreshed,
    case when r.strategy = 'native-replace' then coalesce(sum(b.accepted) filter (where b.action = 'upsert'), 0) end
      as uploaded
  from retl.run r
  left join retl.generation g on g.run_id = r.run_id and g.state <> 'discarded'
  left join retl.batch b on b.run_id = r.run_id and b.state in ('settled', 'uploaded', 'refused')
  where r.run_id = $1
  group by r.run_id, g.generation_id`;

/** Counts of the whole logical run, over all its attempts. @throws JournalError */
export async function countRun(db: Queryable, id: RunId): Promise<RunCounts> {
  return decodeCounts(one(await run(db, COUNTS, [id])));
}

export function decodeCounts(row: Record<string, unknown>): RunCounts {
  return {
    sourceRows: number(row, 'source_rows'),
    members: number(row, 'members'),
    excluded: number(row, 'excluded'),
    toAdd: number(row, 'to_add'),
    toChange: number(row, 'to_change'),
    toRemove: number(row, 'to_remove'),
    unchanged: number(row, 'unchanged'),
    added: number(row, 'added'),
    changed: number(row, 'changed'),
    removed: number(row, 'removed'),
    rejected: number(row, 'rejected'),
    ...(row.to_refresh === null || row.to_refresh === undefined
      ? {}
      : { toRefresh: number(row, 'to_refresh'), refreshed: number(row, 'refreshed') }),
    ...(row.uploaded === null || row.uploaded === undefined ? {} : { uploaded: number(row, 'uploaded') }),
  };
}

/** The journal's own clock: what is told of ages and deadlines is told by it, for workers' clocks differ. @throws JournalError */
export async function journalNow(db: Queryable): Promise<Date> {
  return date(one(await run(db, 'select clock_timestamp() as now')), 'now');
}
