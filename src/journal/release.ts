/**
 * Lets a run go whose holder is lost with its Temporal cluster (design.md section 4, "Who holds a run"): rule 9, by a new
 * epoch that fences whatever attempt may still be alive.
 */

import { type RunId, runId } from '../domain/ids.ts';
import { big, object, text } from './decode.ts';
import { call, type Queryable, run } from './pool.ts';
import type { Holder } from './runs.ts';
import { safeText } from './safe-text.ts';

/** An open run, and who holds it. */
export interface HeldRun {
  readonly run: RunId;
  readonly holder: Holder;
}

const HELD = `
  select r.run_id, r.holder_namespace, r.holder_cluster, r.holder_workflow_id, r.holder_first_run_id
  from retl.run r join retl.mirror m using (mirror_id)
  where m.name = $1 and r.closing is null and r.released is null`;

/** `null` where nobody holds a run of the mirror. @throws JournalError */
export async function heldRun(db: Queryable, mirror: string): Promise<HeldRun | null> {
  const [row] = await run(db, HELD, [mirror]);
  if (row === undefined) return null;
  return {
    run: runId(big(row, 'run_id')),
    holder: {
      namespace: text(row, 'holder_namespace'),
      cluster: text(row, 'holder_cluster'),
      workflowId: text(row, 'holder_workflow_id'),
      firstRunId: text(row, 'holder_first_run_id'),
    },
  };
}

/** Only `released` has changed anything. */
export type Released =
  | 'released'
  | 'no-such-run'
  | 'closed'
  /** It was let go already. */
  | 'not-held'
  /** Another execution has taken it over since. */
  | 'other-holder';

const LONGEST_NAME = 200;

/**
 * @param by who decides; kept, as is `because`, for `retl_reader` only. Neither may be empty.
 * @throws JournalError
 */
export async function releaseLost(
  db: Queryable,
  { run: id, holder }: HeldRun,
  by: string,
  because: string,
): Promise<Released> {
  const answer = await call(db, 'retl.release_lost($1,$2,$3,$4)', [
    id,
    holder.firstRunId,
    safeText(by.slice(0, LONGEST_NAME)),
    safeText(because),
  ]);
  return text(object(answer), 'kind') as Released;
}
