/** The process that plans: it reads the project, opens the journal, and tells the plan, or why there is none, line by line. */

import { expectValidHere, loadMirror } from '../config/load.ts';
import { secretsOf } from '../config/secrets.ts';
import type { SystemTypes } from '../config/system-types.ts';
import { RetlError } from '../domain/errors.ts';
import type { Plan, PlanLine } from '../domain/plan.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import { JournalError } from '../journal/errors.ts';
import type { JournalPool } from '../journal/runs.ts';
import { rightToPlan, withPlanJournal } from './plan-journal.ts';

/** Rows between two signs of life. */
const PROGRESS_ROWS = 50_000;

export interface PlanRequest {
  readonly projectDir: string;
  readonly mirror: string;
  readonly types: SystemTypes;
  /** The most members of each kind to show by their values; `null`: none. */
  readonly identities: number | null;
}

export type Preview = (
  journal: JournalPool,
  settings: MirrorSettings,
  options: { readonly identities: number | null; readonly onProgress: (rows: number) => void },
) => Promise<Plan>;

/** Tells one line that is not of progress, and that one last. Never throws what can be told. */
export async function tellPlan(
  request: PlanRequest,
  preview: Preview,
  say: (line: PlanLine) => void,
): Promise<void> {
  try {
    say(await plan(request, preview, say));
  } catch (error) {
    say(failureOf(error));
  }
}

async function plan(
  { projectDir, mirror, types, identities }: PlanRequest,
  preview: Preview,
  say: (line: PlanLine) => void,
): Promise<PlanLine> {
  // Whoever plans needs fewer secrets than a worker: each is looked up where it is used.
  const project = expectValidHere(await loadMirror(projectDir, mirror, types, null));
  const [settings] = project.mirrors;
  if (settings === undefined) throw new RetlError('config.unknown-mirror', { mirror });
  let told = 0;
  const onProgress = (rows: number): void => {
    if (rows - told < PROGRESS_ROWS) return;
    told = rows;
    say({ kind: 'progress', rows });
  };
  return withPlanJournal(project.journal, secretsOf(projectDir), async (journal) => {
    const right = await rightToPlan(journal, identities !== null);
    if (right !== 'granted') return { kind: 'refused', code: right };
    return { kind: 'plan', plan: await preview(journal, settings, { identities, onProgress }) };
  });
}

/** What can be told of an error to the process that asked. */
export function failureOf(error: unknown): Extract<PlanLine, { kind: 'failed' | 'unexpected' }> {
  if (error instanceof RetlError) return { kind: 'failed', code: error.code, details: error.details };
  if (error instanceof JournalError) {
    // 3D000: no such database; 28xxx: who connects is not let in.
    const isAway = error.kind === 'unavailable' || /^(3D000|28)/.test(error.sqlState);
    const code = isAway ? 'journal.unavailable' : 'journal.missing';
    return { kind: 'failed', code, details: { sqlstate: error.sqlState } };
  }
  return { kind: 'unexpected', name: error instanceof Error ? error.name : typeof error };
}
