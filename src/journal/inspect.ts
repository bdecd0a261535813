/** Read-only views of the journal for people: what `status` and `runs` show. No values, no identities. */

import type pg from 'pg';
import type { GuardCode } from '../domain/messages.ts';
import type { Doing } from '../domain/needed.ts';
import type { Phase, RunCounts, RunState } from '../domain/run.ts';
import { date, dateOrNull, flag, number, one, text, textOrNull } from './decode.ts';
import { DOING_COLUMNS, decodeDoing, doingOf, NOT_KNOWN } from './open-state.ts';
import { openJournal, run } from './pool.ts';
import { decodeCounts } from './run-record.ts';

/** One logical run, counts over all its attempts. */
export interface RunSummary {
  readonly runId: string;
  readonly mirror: string;
  /** `open`, or how it was closed (`completed`, `aborted`, `rejected`, `guard-rejected`, …). */
  readonly state: string;
  readonly phase: Phase;
  /** Value-free code of why it stopped or waits; `null` where nothing is wrong. */
  readonly reason: string | null;
  /** Where Temporal holds it: `namespace/workflow id`. */
  readonly holder: string;
  /** `cancelled`, `failed`, … where an open run was let go and can be resumed; `null` while it is held. */
  readonly released: string | null;
  readonly openedAt: Date;
  readonly closedAt: Date | null;
  /** Which limit the guard asks about, while the run is open and parked; else `null`. */
  readonly parked: GuardCode | null;
  /** Whether it mirrors into another target than the run before it: what is held there stays as it is. */
  readonly changedTarget: boolean;
  readonly counts: RunCounts;
  /** On their way, staged, or of unknown outcome. */
  readonly unresolvedBatches: number;
  /** Those of unknown outcome, or of whose jobs nothing can be told: they are verified by the adapter, or wait for a person. */
  readonly unknownBatches: number;
  /** What an open run is doing, and why it does not move; `null`: it is closed. */
  readonly doing: Doing | null;
}

/** One mirror with what its target is known to hold. */
export interface MirrorSummary {
  readonly mirror: string;
  readonly strategy: string;
  /** Members durably accepted by the destination. */
  readonly held: number;
  readonly baseline: string | null;
  /** Members that are not there as the source had them at the newest promotion: the destination rejected them (rule 5). */
  readonly exceptions: number;
  /** Targets that it mirrored into before, and that hold members still: nobody looks at them any more. */
  readonly formerTargets: { readonly targets: number; readonly members: number };
  readonly lastRun: RunSummary | null;
}

/** Opens the journal for `read` and closes it whatever happens. @throws JournalError */
export async function inspectJournal<T>(url: string, read: (journal: pg.Pool) => Promise<T>): Promise<T> {
  const pool = openJournal({ url, max: 2, applicationName: 'retl inspect' });
  try {
    return await read(pool);
  } finally {
    await pool.end();
  }
}

/** The role that the connection acts as. @throws JournalError */
export async function roleOf(journal: pg.Pool): Promise<string> {
  return text(one(await run(journal, 'select current_user::text as role')), 'role');
}

const RUNS = `
  select r.run_id::text as run_id, m.name as mirror, coalesce(r.closing, 'open') as state, r.phase, r.reason,
    r.holder_namespace || '/' || r.holder_workflow_id as holder, r.released, r.opened_at, r.closed_at,
    case when r.closing is null then r.parked_code end as parked,
    coalesce((select o.target_id <> r.target_id from retl.run o
      where o.mirror_id = r.mirror_id and o.run_id < r.run_id order by o.run_id desc limit 1), false) as changed_target,
    coalesce(g.source_rows, 0) as source_rows, coalesce(g.members, 0) as members, coalesce(g.excluded, 0) as excluded,
    coalesce(r.planned_added, 0) as to_add, coalesce(r.planned_changed, 0) as to_change,
    coalesce(r.planned_removed, 0) as to_remove, coalesce(r.planned_unchanged, 0) as unchanged,
    b.added, b.changed, b.removed, b.rejected, b.refreshed, b.unresolved, b.unknown,
    case when r.refresh_after_ms is not null and r.strategy = 'snapshot-diff' then r.planned_refreshed end as to_refresh,
    case when r.strategy = 'native-replace' then b.uploaded end as uploaded, ${DOING_COLUMNS}
  from retl.run r
  join retl.mirror m using (mirror_id)
  left join lateral (
    select source_rows, members, excluded from retl.generation g where g.run_id = r.run_id
    order by generation_id desc limit 1) g on true
  cross join lateral (
    select coalesce(sum(b.added) filter (where b.action = 'upsert' and b.state = 'settled'), 0) as added,
      coalesce(sum(b.changed) filter (where b.action = 'upsert' and b.state = 'settled'), 0) as changed,
      coalesce(sum(b.accepted) filter (where b.action = 'remove'), 0) as removed,
      coalesce(sum(case when b.divisible then upper(b.operations) - lower(b.operations) else b.rejected end), 0) as rejected,
      coalesce(sum(b.accepted - b.added - b.changed) filter (where b.action = 'upsert' and b.state = 'settled'), 0)
        as refreshed,
      coalesce(sum(b.accepted) filter (where b.action = 'upsert'), 0) as uploaded,
      count(*) filter (where b.state in ('sending', 'unknown', 'staged')) as unresolved,
      count(*) filter (where ${NOT_KNOWN}) as unknown
    from retl.batch b where b.run_id = r.run_id) b
  left join ${doingOf('r')} d on true
  where ($1::text is null or m.name = $1)
    and ($3::text[] is null or r.closing = any($3) or r.closing is null and $3 && array['open', d.state])
  order by r.run_id desc limit $2`;

export interface RunsWanted {
  /** Of every mirror where it is absent. */
  readonly mirror?: string;
  /** In any state where it is absent, else in one of these. */
  readonly states?: readonly RunState[];
  readonly limit: number;
}

/** Runs, newest first. @throws JournalError */
export async function listRuns(
  journal: pg.Pool,
  { mirror, states, limit }: RunsWanted,
): Promise<readonly RunSummary[]> {
  const rows = await run(journal, RUNS, [mirror ?? null, limit, states ?? null]);
  return rows.map((row) => ({
    runId: text(row, 'run_id'),
    mirror: text(row, 'mirror'),
    state: text(row, 'state'),
    phase: text(row, 'phase') as Phase,
    reason: textOrNull(row, 'reason'),
    holder: text(row, 'holder'),
    released: textOrNull(row, 'released'),
    openedAt: date(row, 'opened_at'),
    closedAt: dateOrNull(row, 'closed_at'),
    parked: textOrNull(row, 'parked') as GuardCode | null,
    changedTarget: flag(row, 'changed_target'),
    counts: decodeCounts(row),
    unresolvedBatches: number(row, 'unresolved'),
    unknownBatches: number(row, 'unknown'),
    doing: decodeDoing(row),
  }));
}

const MIRRORS = `
  select m.name as mirror, m.strategy, t.baseline, coalesce(t.held, 0) + coalesce(u.more, 0) as held,
    (select count(*) from retl.exception e join retl.generation g using (run_id)
     where g.target_id = t.target_id and g.state = 'promoted') as exceptions,
    f.targets as former_targets, f.members as former_members
  from retl.mirror m
  left join lateral (
    select t.target_id, t.baseline, t.held from retl.target t where t.mirror_id = m.mirror_id
    order by (select max(r.run_id) from retl.run r where r.target_id = t.target_id) desc nulls last limit 1) t on true
  left join lateral (
    -- Accepted, but not folded into the table yet: membership is a meaning, not a table.
    select sum(case b.action when 'upsert' then b.added else -b.accepted end) as more
    from retl.batch b join retl.run r using (run_id)
    where r.target_id = t.target_id and b.state = 'settled' and not b.folded) u on true
  cross join lateral (
    select count(*) as targets, coalesce(sum(members), 0) as members from (
      select o.held + coalesce((
        select sum(case b.action when 'upsert' then b.added else -b.accepted end)
        from retl.batch b join retl.run r using (run_id)
        where r.target_id = o.target_id and b.state = 'settled' and not b.folded), 0) as members
      from retl.target o where o.mirror_id = m.mirror_id and o.target_id <> t.target_id) other
    where members > 0) f
  order by m.name`;

/** Mirrors by name, each with what its newest target is known to hold. @throws JournalError */
export async function listMirrors(journal: pg.Pool): Promise<readonly MirrorSummary[]> {
  const rows = await run(journal, MIRRORS);
  return Promise.all(
    rows.map(async (row) => {
      const mirror = text(row, 'mirror');
      const [lastRun] = await listRuns(journal, { mirror, limit: 1 });
      return {
        mirror,
        strategy: text(row, 'strategy'),
        held: number(row, 'held'),
        baseline: textOrNull(row, 'baseline'),
        exceptions: number(row, 'exceptions'),
        formerTargets: {
          targets: number(row, 'former_targets'),
          members: number(row, 'former_members'),
        },
        lastRun: lastRun ?? null,
      };
    }),
  );
}
