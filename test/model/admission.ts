/** Admits an execution to the mirror of a history, as src/activities/admit.ts does, Temporal having said who is closed. */

import type pg from 'pg';
import { settledBy } from '../../src/activities/admit.ts';
import { failing } from '../../src/activities/failures.ts';
import type { Phase } from '../../src/domain/run.ts';
import { loadRun } from '../../src/journal/run-record.ts';
import { type Admission, admit } from '../../src/journal/runs.ts';
import type { World } from './world.ts';

export interface Admitted {
  readonly run: string;
  readonly resume: Extract<Admission, { kind: 'admitted' }>['resume'];
  readonly phase: Phase;
}

/** @throws ApplicationFailure */
export function admission(world: World, firstRunId: string, journal: pg.Pool): Promise<Admitted> {
  const { settings, mirror, configuration, logger } = world;
  const asked = settledBy({ destinations: world.destinations(null), configuration }, settings);
  return failing(logger, async () => {
    const ask = (closedHolder: string | null) =>
      admit(journal, {
        mirror,
        ...asked,
        holder: { namespace: 'model', cluster: 'model', workflowId: `mirror/${mirror}`, firstRunId },
        closedHolder,
        resumeAfter: new Date(0),
      });
    const first = await ask(null);
    // Temporal says that every earlier execution is closed, whichever of them holds the run.
    const answer = first.kind === 'busy' ? await ask(first.holder.firstRunId) : first;
    if (answer.kind !== 'admitted') throw new Error(`not admitted: ${JSON.stringify(answer)}`);
    const { phase } = await loadRun(journal, answer.run);
    return { run: answer.run.toString(), resume: answer.resume, phase };
  });
}
