/** Says of runs that have ended that their target was a new one, for people: what the earlier one holds stays as it is. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Project } from './environment.ts';
import { readMirrors } from './journal.ts';
import type { Output } from './output.ts';
import { counted } from './problems-view.ts';

/** The runs have ended: longer than this nobody waits for a remark. */
const WITHIN_MS = 2_000;

/** Says nothing where the journal cannot be asked from here. */
export async function noteChangedTargets(
  output: Output,
  project: Project,
  mirrors: readonly string[],
): Promise<void> {
  if (output.json) return;
  const late = sleep(WITHIN_MS, [], { ref: false });
  const known = await Promise.race([readMirrors(project).catch(() => []), late]);
  for (const { mirror, lastRun, formerTargets } of known) {
    const { targets, members } = formerTargets;
    if (!mirrors.includes(mirror) || lastRun?.changedTarget !== true || targets === 0) continue;
    output.note(
      `${mirror}: its target has changed. What it mirrored into before is left as it is, and holds ${counted(members, 'member')} still.`,
    );
  }
}
