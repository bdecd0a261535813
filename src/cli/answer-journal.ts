/** Answers a parked run by the journal: the answer is a row, bound to what was shown; the run is told to look. */

import { sha256 } from '../domain/ids.ts';
import type { UpdateName } from '../domain/messages.ts';
import type { Decided, ParkedRun } from '../journal/approvals.ts';
import { type Answered, type Asked, type Told, VERDICTS } from './answered.ts';
import type { Project } from './environment.ts';
import { holderOf, type Journal } from './journal.ts';
import { operatorOf } from './operator.ts';
import { withTemporal } from './temporal.ts';

const PROGRESS_WITHIN_MS = 2_000;

/** `null` where no run of the mirror is parked. @throws JournalError */
export async function askedByJournal(journal: Journal, mirror: string): Promise<Asked | null> {
  const { parkedRun } = await import('../journal/approvals.ts');
  const found = await parkedRun(journal, mirror);
  return found === null ? null : askedOf(found);
}

function askedOf(found: ParkedRun): Asked {
  const { run, mirror, code, removals, held, shown, parkedAt, deadline, toAdd, toChange } = found;
  return {
    mirror,
    runId: run.toString(),
    parked: { code, removals, held, shown, deadlineMs: deadline.getTime() },
    since: parkedAt,
    toAdd,
    toChange,
    verdict: found.verdict,
  };
}

/** Writes the answer down, then tells the run. @throws JournalError */
export async function decideByJournal(
  journal: Journal,
  project: Project,
  asked: Asked,
  answer: UpdateName,
  because: string | null,
): Promise<Answered> {
  const { decide } = await import('../journal/approvals.ts');
  const { runId } = await import('../domain/ids.ts');
  const decided = await decide(journal, {
    run: runId(BigInt(asked.runId ?? 0)),
    shown: sha256(asked.parked.shown),
    verdict: VERDICTS[answer],
    by: await operatorOf(journal),
    because,
    via: 'cli',
  });
  const done = answeredOf(decided, asked.mirror);
  if (done.kind !== 'recorded') return done;
  return { ...done, told: await tell(project, asked.mirror) };
}

function answeredOf(decided: Decided, mirror: string): Answered {
  const { kind } = decided;
  if (kind === 'recorded' || kind === 'repeated') return { kind: 'recorded', mirror, told: 'unreachable' };
  const why = kind === 'no-such-run' ? 'not-parked' : kind;
  return { kind: 'refused', mirror, why };
}

/** The answer stands whether or not the run hears of it at once. A run that was paused stays so. */
async function tell(project: Project, mirror: string): Promise<Told> {
  const { signalMirror } = await import('../client/control.ts');
  const { readProgress } = await import('../client/watch.ts');
  try {
    return await withTemporal(project, async (temporal) => {
      const workflowId = await holderOf(project, mirror, temporal.namespace);
      const sent = await signalMirror(temporal, mirror, 'look', workflowId);
      if (sent.kind !== 'sent') return 'not-running';
      const progress = await readProgress(temporal, sent.workflowId, PROGRESS_WITHIN_MS);
      return progress?.paused === true ? 'paused' : 'told';
    });
  } catch {
    return 'unreachable';
  }
}
