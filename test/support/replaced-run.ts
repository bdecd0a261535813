/** What follows the accepted finish of a native replacement, played by hand. */

import type pg from 'pg';
import type { RunAttempt } from '../../src/activities/attempt.ts';
import { completeReplacement } from '../../src/activities/replacement.ts';
import { loadRun } from '../../src/journal/run-record.ts';
import { promote } from '../../src/journal/runs.ts';
import type { ScriptedRun } from './journal-run.ts';

/** What the activity does, as the attempt that the run is in; `stops`: it is told to stop after its first step. */
export async function complete(journal: pg.Pool, run: ScriptedRun, stops = false): Promise<void> {
  const a: Pick<RunAttempt, 'deps' | 'attempt' | 'record' | 'stop' | 'reload'> = {
    deps: { journal } as RunAttempt['deps'],
    attempt: run.attempt,
    record: await run.record(),
    stop: stops ? AbortSignal.abort() : new AbortController().signal,
    reload: () => loadRun(journal, run.run),
  };
  await completeReplacement(a as RunAttempt);
}

export async function promoted(journal: pg.Pool, run: ScriptedRun): Promise<void> {
  await complete(journal, run);
  await run.foldAll();
  await promote(journal, run.attempt);
}
