/** After the play: everything is repaired, one quiet run of each mirror goes to its end, and everything is compared. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Ending, endingFrom, endingOf } from '../../src/client/failure.ts';
import { mirrorWorkflowId } from '../../src/domain/messages.ts';
import { ReplayedIndex } from '../support/log-replay.ts';
import type { World } from './chaos.ts';
import type { Lane } from './lane.ts';
import { type Contents, textOf } from './story.ts';

const PLANS = ['vip', 'gold', 'free'];
/** Longer than whatever a destination has put off. */
const LATE_MS = 8_000;
const END_WITHIN_MS = 420_000;

export interface Result {
  readonly lane: Lane;
  readonly runs: number;
  readonly completed: number;
  /** How quiet runs ended that did not complete. */
  readonly endings: readonly string[];
  readonly differences: readonly string[];
}

/** Ends all trouble. */
export async function calm({ system, lanes, source, operator }: World): Promise<void> {
  system.proxy.refusing = false;
  source.cutAfter(null);
  for (const { name, line, schedule, lie, mend, story } of lanes) {
    line?.refuse(false);
    line?.resume();
    lie(0);
    await mend();
    if (schedule) await system.temporal.client.schedule.getHandle(`mirror/${name}`).delete();
    await story.mend(PLANS);
  }
  operator.quiet = true;
  await sleep(LATE_MS);
  for (const { mend } of lanes) await mend();
}

export async function finale(world: World): Promise<readonly Result[]> {
  const results = await Promise.all(
    world.lanes.map(async (lane) => {
      const { endings, problem } = await quietRun(world, lane);
      const differences = problem === null ? await compare(world, lane) : [problem];
      return { lane, endings, differences, ...(await runsOf(world, lane)) };
    }),
  );
  return results;
}

/** Runs until one completes that was started after everything was quiet. */
async function quietRun(
  { system }: World,
  { name, scene }: Lane,
): Promise<{ readonly endings: readonly string[]; readonly problem: string | null }> {
  const endings: string[] = [];
  const until = Date.now() + END_WITHIN_MS;
  while (Date.now() < until) {
    const started = await scene.start().catch(() => null);
    const handle = started ?? system.temporal.client.workflow.getHandle(mirrorWorkflowId(name));
    const left = sleep(Math.max(0, until - Date.now()), null, { ref: false });
    const end = await Promise.race([endOf(handle.result()), left]);
    if (end === null) break;
    const completed = end.kind === 'result' && end.result.outcome === 'completed';
    if (completed && started !== null) return { endings, problem: null };
    if (!completed) endings.push(wordsOf(end));
    // A run that another execution holds is waited for.
    if (!completed) await sleep(2_000);
  }
  const runs = (await scene.runs()).slice(-2);
  const batches = (await scene.batches()).filter(({ state }) => !['settled', 'uploaded'].includes(state));
  const seen = JSON.stringify({ endings, runs, batches: batches.slice(-3) });
  return { endings, problem: `no quiet run has come to its end: ${seen}` };
}

async function endOf(result: Promise<unknown>): Promise<Ending> {
  try {
    return endingFrom(await (result as Promise<Parameters<typeof endingFrom>[0]>));
  } catch (error) {
    return endingOf(error) ?? { kind: 'unexpected', type: error instanceof Error ? error.message : 'Error' };
  }
}

export function wordsOf(end: Ending): string {
  if (end.kind === 'result') return end.result.outcome;
  // The code, and what it is about; counts and names come after it.
  if (end.kind === 'failed') return `${end.type}: ${end.message.split(': ')[0]}`;
  return end.kind === 'unexpected' ? `unexpected: ${end.type}` : end.kind;
}

async function runsOf(
  { system }: World,
  { name }: Lane,
): Promise<{ readonly runs: number; readonly completed: number }> {
  const [row] = await system.rows<{ runs: number; completed: number }>(
    `select count(*)::integer as runs, count(*) filter (where closing = 'completed')::integer as completed
     from retl.run join retl.mirror using (mirror_id) where name = $1`,
    [name],
  );
  return row ?? { runs: 0, completed: 0 };
}

/** Destination, query, log and membership say the same. */
async function compare({ system }: World, lane: Lane): Promise<readonly string[]> {
  const found: string[] = [];
  const held = (await lane.held()) ?? new Map<string, string>();
  const wanted = lane.story.now;
  const { rows } = await system.source.query<{ id: string; plan: string }>(
    `select id, plan from ${lane.story.table} where plan is not null`,
  );
  if (textOf(new Map(rows.map(({ id, plan }) => [id, plan]))) !== textOf(wanted))
    found.push('the play has lost sight of its source');
  if (textOf(held) !== textOf(wanted)) found.push(`the destination differs: ${difference(held, wanted)}`);
  const [target] = await system.rows<{ target: string; held: string }>(
    `select target_id::text as target, held::text from retl.target join retl.mirror using (mirror_id) where name = $1`,
    [lane.name],
  );
  if (target === undefined) return [...found, 'the journal knows no target'];
  if (Number(target.held) !== wanted.size)
    found.push(`the journal counts ${target.held} members held, and ${wanted.size} are`);
  const log = await replayed(system.journal, target.target);
  if (textOf(log.contents) !== textOf(wanted))
    found.push(`the log differs: ${difference(log.contents, wanted)}`);
  const members = await system.rows<{ member: string }>(
    `select encode(identity_hash, 'hex') || ' ' || encode(payload_hash, 'hex') as member
     from retl.membership_${target.target} order by 1`,
  );
  if (members.map(({ member }) => member).join() !== log.hashes.join())
    found.push(`the membership (${members.length}) is not what the log says (${log.hashes.length})`);
  return found;
}

/** What the log says that a target holds: by id, and by hashes. */
async function replayed(
  journal: World['system']['journal'],
  target: string,
): Promise<{ readonly contents: Contents; readonly hashes: readonly string[] }> {
  const lines = (await ReplayedIndex.replay(journal, 200))
    .dump()
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([of]) => of !== '' && Number(of) === Number(target));
  const contents = new Map<string, string>();
  for (const [, , , , payload = ''] of lines) {
    const { id, plan } = JSON.parse(payload) as { readonly id: string; readonly plan: string };
    contents.set(id, plan);
  }
  return { contents, hashes: lines.map(([, identity, payload]) => `${identity} ${payload}`).sort() };
}

function difference(held: Contents, wanted: Contents): string {
  const missing = [...wanted.keys()].filter((id) => !held.has(id));
  const extra = [...held.keys()].filter((id) => !wanted.has(id));
  const other = [...wanted].filter(([id, plan]) => held.has(id) && held.get(id) !== plan).map(([id]) => id);
  return JSON.stringify({ missing, extra, other });
}

/** The commands that verify find nothing wrong. */
export async function verify({ operator, indexes }: World): Promise<readonly string[]> {
  const found: string[] = [];
  const insist = async (...args: readonly string[]): Promise<void> => {
    const { code, stdout, stderr } = await operator.retl(...args);
    if (code !== 0)
      found.push(`retl ${args.join(' ')} leaves with ${code}: ${stdout} ${stderr}`.slice(0, 600));
  };
  await insist('log', 'verify');
  for (const index of indexes) {
    await operator.retl('index', 'stop', index);
    await insist('index', 'run', index, '--once');
    await insist('index', 'verify', index);
  }
  await insist('log', 'compact', '--before', '1s', '--yes');
  await insist('log', 'verify');
  return found;
}
