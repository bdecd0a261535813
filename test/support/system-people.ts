/** What a person does about a run of a system, and what anybody may read of it: through the journal, as the command line does. */

import { expect } from 'vitest';
import { type LogPosition, logPosition } from '../../src/domain/ids.ts';
import { decide, parkedRun } from '../../src/journal/approvals.ts';
import { type LogEntry, readEffects, readEntries } from '../../src/journal/log.ts';
import { eventually, type Scene } from './system-scene.ts';

const PATIENCE_MS = 120_000;

/** Somebody approves of what the run would remove, whether or not a worker is there to hear of it. */
export async function approve(scene: Scene): Promise<void> {
  const { journal } = scene.system;
  await eventually(async () => (await parkedRun(journal, scene.mirror)) !== null, PATIENCE_MS);
  const asked = await parkedRun(journal, scene.mirror);
  if (asked === null) throw new Error('no run is parked');
  const { run, shown } = asked;
  const answer = { run, shown, verdict: 'approved', by: 'ann', because: 'it is meant', via: 'cli' } as const;
  expect(await decide(journal, answer)).toEqual({ kind: 'recorded' });
  await scene.signal('resume');
}

/** The send deadline of everything unknown passes. */
export async function passDeadline({ system, mirror }: Scene): Promise<void> {
  await system.rows(
    `update retl.batch b set send_deadline = clock_timestamp() - interval '1 second' from retl.run r join retl.mirror m using (mirror_id)
     where b.run_id = r.run_id and m.name = $1 and b.state = 'unknown'`,
    [mirror],
  );
}

/** All that the journal has on record of a mirror's runs, to compare. */
export function recordOf({ system, mirror }: Scene): Promise<readonly object[]> {
  return system.rows(
    `select b.batch_id, b.state, b.receipt, b.resends, b.position, r.epoch, r.phase, r.closing
     from retl.run r join retl.mirror m using (mirror_id) left join retl.batch b using (run_id)
     where m.name = $1 order by r.run_id, b.batch_id`,
    [mirror],
  );
}

/** A member as its payload says. */
export type Member = { readonly [field: string]: unknown };
type Looked = (entry: LogEntry, action: 'upsert' | 'remove', member: Member) => void;

/** Replays the log: what it says that the mirror's target holds, by the field that names a member. */
export async function heldByLog(
  scene: Scene,
  looked: Looked = () => undefined,
  name = 'id',
): Promise<ReadonlyMap<string, Member>> {
  const held = new Map<string, Member>();
  const runs = new Set((await scene.runs()).map(({ run }) => run));
  let position: LogPosition = logPosition(0);
  for (;;) {
    const entries = await readEntries(scene.system.journal, position, 500);
    for (const entry of entries) {
      position = entry.position;
      if (!runs.has(entry.run.toString()) || entry.kind === 'finish') continue;
      for (const effect of await readEffects(scene.system.journal, entry)) {
        const member: Member = JSON.parse(effect.payload);
        looked(entry, effect.action, member);
        if (effect.action === 'upsert') held.set(String(member[name]), member);
        else held.delete(String(member[name]));
      }
    }
    if (entries.length < 500) return held;
  }
}
