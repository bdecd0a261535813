/**
 * Why a newcomer is refused: who holds the mirror's open run, what that run is doing, and what it needs, as `retl status` would say.
 * The run itself is asked first, for a pause stands in no journal; where it does not answer, the journal tells.
 */

import { getClient } from '@temporalio/activity';
import { RetlError } from '../domain/errors.ts';
import { PROGRESS_QUERY, type Progress } from '../domain/messages.ts';
import { neededWords, type Standstill, standstillOf } from '../domain/needed.ts';
import { openRunDoing } from '../journal/open-state.ts';
import type { Holder } from '../journal/runs.ts';
import type { Dependencies } from './deps.ts';

const ANSWER_WITHIN_MS = 2_000;

/** @throws JournalError */
export async function busy(
  deps: Dependencies,
  mirror: string,
  holder: Holder,
  state: 'open' | 'unknown',
): Promise<RetlError> {
  const { namespace, workflowId } = holder;
  const details = { holder: `${namespace}/${workflowId}`, 'its state': state };
  const open = await openRunDoing(deps.journal, mirror);
  if (open === null) return new RetlError('run.busy', details);
  const said = state === 'open' ? await progressOf(holder) : null;
  const stands = said?.runId === open.run ? said.waiting : standstillOf(open);
  const phase = said?.runId === open.run ? said.phase : open.phase;
  const needed = stands === null ? null : neededWords(mirror, stands);
  return new RetlError('run.busy', {
    ...details,
    run: open.run,
    'it is': doingWords(phase, stands),
    ...(needed === null ? {} : { 'it needs': needed }),
  });
}

function doingWords(phase: string, stands: Standstill | null): string {
  if (stands === null) return `running (${phase})`;
  const kind = stands.kind === 'retry' ? 'waiting' : stands.kind;
  return `${kind} (${phase})${stands.code === kind ? '' : `: ${stands.code}`}`;
}

/** What the run shows of itself; `null` where nobody answers for it: that is no reason to fail. */
async function progressOf({ workflowId }: Holder): Promise<Progress | null> {
  const client = getClient();
  try {
    return await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () =>
      client.workflow.getHandle(workflowId).query<Progress>(PROGRESS_QUERY),
    );
  } catch {
    return null;
  }
}
