/**
 * Retention of what runs leave behind (design.md section 5): superseded generations, and runs that nobody goes on with. Each call
 * is one bounded step in one transaction (migrations/0003, 0010); what is protected is decided there. Receipts and what a
 * compaction makes superfluous are in compaction.ts.
 */

import { epoch, type RunId, runId } from '../domain/ids.ts';
import { big, flag, number, one, text } from './decode.ts';
import { call, type Queryable, run } from './pool.ts';
import type { Attempt, Holder } from './runs.ts';

/** Drops at most `limit` superseded generations, of any target, that nothing refers to; resolves to how many. @throws JournalError */
export async function pruneGenerations(db: Queryable, limit: number): Promise<number> {
  return Number(await call(db, 'retl.prune_generations(null, $1)', [limit]));
}

/** An open run, old enough, with a candidate, and with nothing unresolved: abandoned, if its holder is gone. */
export interface AbandonedRun {
  readonly run: RunId;
  readonly holder: Holder;
  /** Its holder has let go, so that nobody need be asked. */
  readonly released: boolean;
}

const ABANDONED =
  'select run_id, released, namespace, cluster, workflow_id, first_run_id from retl.abandoned_runs($1, $2, $3)';

/**
 * Those after the run `after` (0: from the first), in order.
 * @param ageMs since the run was sealed (else opened), and since anybody took it up; a day at least.
 * @throws JournalError
 */
export async function abandonedRuns(
  db: Queryable,
  ageMs: number,
  after: bigint,
  limit: number,
): Promise<readonly AbandonedRun[]> {
  return (await run(db, ABANDONED, [ageMs, after, limit])).map((row) => ({
    run: runId(big(row, 'run_id')),
    released: flag(row, 'released'),
    holder: {
      namespace: text(row, 'namespace'),
      cluster: text(row, 'cluster'),
      workflowId: text(row, 'workflow_id'),
      firstRunId: text(row, 'first_run_id'),
    },
  }));
}

/**
 * Takes an abandoned run over, to close it (rule 9: whoever held it is fenced).
 * @param closedHolder first run id of a holder that Temporal says is closed; `null` where nobody was asked.
 * @returns false: it is not abandoned after all, or somebody holds it.
 * @throws JournalError
 */
export async function adoptAbandoned(
  db: Queryable,
  id: RunId,
  ageMs: number,
  closedHolder: string | null,
  { namespace, cluster, workflowId, firstRunId }: Holder,
): Promise<boolean> {
  const values = [id, ageMs, closedHolder, namespace, cluster, workflowId, firstRunId];
  return (await call(db, 'retl.adopt_abandoned($1,$2,$3,$4,$5,$6,$7)', values)) === true;
}

const REPLACED = `
  select t.target_id, r.run_id, r.epoch from retl.target t
  cross join lateral (select run_id, strategy, epoch from retl.run
    where target_id = t.target_id and closing = 'completed' order by run_id desc limit 1) r
  where t.target_id > $1 and r.strategy = 'native-replace' order by t.target_id limit 1`;

/** The next target after `after` that a run has replaced, and the newest run that did, at its last attempt; `null`: none is left. @throws JournalError */
export async function nextReplaced(
  db: Queryable,
  after: bigint,
): Promise<{ readonly target: bigint; readonly attempt: Attempt } | null> {
  const [row] = await run(db, REPLACED, [after]);
  if (row === undefined) return null;
  const attempt = { run: runId(big(row, 'run_id')), epoch: epoch(text(row, 'epoch')) };
  return { target: big(row, 'target_id'), attempt };
}

/** What waits to be taken away. */
export interface RetentionBacklog {
  readonly generations: number;
  /** Open runs that are old enough, at most 1,000; whether their holders are gone is for Temporal to say. */
  readonly candidates: number;
  /** Closed runs whose answers and attempts are old enough. */
  readonly receiptsOfRuns: number;
  /** Tables that a compaction has replaced. */
  readonly tables: number;
}

const BACKLOG = `
  select
    (select count(*) from retl.generation g join retl.run r using (run_id)
      where g.state in ('superseded', 'kept') and g.rows_present
        and (r.operations_hold_bytes or r.additions_end < r.first_sequence)) as generations,
    (select count(*) from retl.abandoned_runs($1, 0, 1000)) as candidates,
    (select count(*) from retl.run where closing is not null and not receipts_pruned
      and closed_at < clock_timestamp() - $2 * interval '1 ms') as receipts,
    (select count(*) from retl.leftover)
      + (select count(*) from retl.log_snapshot where state = 'superseded' and rows_present) as tables`;

/** @throws JournalError */
export async function retentionBacklog(
  db: Queryable,
  {
    keepCandidatesMs,
    keepReceiptsMs,
  }: { readonly keepCandidatesMs: number; readonly keepReceiptsMs: number },
): Promise<RetentionBacklog> {
  const row = one(await run(db, BACKLOG, [keepCandidatesMs, keepReceiptsMs]));
  return {
    generations: number(row, 'generations'),
    candidates: number(row, 'candidates'),
    receiptsOfRuns: number(row, 'receipts'),
    tables: number(row, 'tables'),
  };
}
