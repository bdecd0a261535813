/**
 * The alias by which readers ask an index, whatever build is live: swapped in one step, filtered to those that are held. It
 * is put back where it was lost or changed; where somebody has led it to an index of his own, or the name is taken, a person decides.
 */

import { z } from 'zod';
import { RetlError } from '../../domain/errors.ts';
import { ask, done, type Engine, refusal } from './ask.ts';
import { aliasOf, type Directory, deleteIndex, type Place, readDirectory } from './directory.ts';
import { HELD } from './form.ts';
import { madeIndexes, saidBy } from './made-here.ts';

const mappings = z.record(
  z.string(),
  z.object({ mappings: z.object({ _meta: z.unknown() }).partial().optional() }),
);

const aliases = z.record(
  z.string(),
  z.object({ aliases: z.record(z.string(), z.object({ filter: z.unknown() }).partial()) }),
);

/**
 * The indexes that the alias leads to; empty where there is none.
 * @throws RetlError `index.misconfigured` where the name belongs to somebody else
 */
export async function aliased(engine: Engine, place: Place): Promise<readonly string[]> {
  const alias = aliasOf(place);
  const answer = await ask(engine, { method: 'GET', path: `/${alias}/_mapping` });
  if (answer.status === 404) return [];
  const read = mappings.safeParse(answer.body);
  if (answer.status !== 200 || !read.success) throw refusal(engine, answer.status, answer.body);
  const found = Object.keys(read.data);
  if (found.includes(alias)) throw taken(engine, 'name-taken');
  const isOurs = (index: string) => saidBy(read.data[index]?.mappings?._meta, place)?.scratch === false;
  if (!found.every(isOurs)) throw taken(engine, 'alias-taken');
  return found;
}

function taken({ client }: Engine, rule: string): RetlError {
  return new RetlError('index.misconfigured', { system: client.system, rule });
}

/** Leads the alias to one index alone, in one step. @throws RetlError */
export async function swapAlias(
  engine: Engine,
  place: Place,
  to: string,
  from: readonly string[],
): Promise<void> {
  const alias = aliasOf(place);
  const removed = from.filter((index) => index !== to).map((index) => ({ remove: { index, alias } }));
  const actions = [...removed, { add: { index: to, alias, filter: HELD } }];
  await done(engine, { method: 'POST', path: '/_aliases', body: JSON.stringify({ actions }) });
}

/** How often the directory is asked again that a promotion has changed meanwhile. */
const LOOKS = 3;

/** Puts the alias back where it does not lead to the live build, with its filter. @throws RetlError */
export async function healAlias(engine: Engine, place: Place): Promise<void> {
  let { live } = await readDirectory(engine, place);
  for (let looked = 0; looked < LOOKS && live !== null; looked += 1) {
    const now = await aliased(engine, place);
    if (now.length === 1 && now[0] === live && (await isFiltered(engine, place, live))) return;
    // The alias may be right, and what was read of the directory a moment too old: before the swap, and after it.
    const before = (await readDirectory(engine, place)).live;
    if (before === live) {
      const answer = await ask(engine, { method: 'GET', path: `/${live}/_mapping` });
      // A build that was deleted by hand is begun anew.
      if (answer.status === 404) return;
      await swapAlias(engine, place, live, now);
    }
    live = (await readDirectory(engine, place)).live;
  }
}

/** What keeps readers from the live build. @throws RetlError as {@link aliased} */
export async function aliasAstray(
  engine: Engine,
  place: Place,
): Promise<'alias-gone' | 'alias-changed' | null> {
  const { live } = await readDirectory(engine, place);
  if (live === null) return null;
  const now = await aliased(engine, place);
  if (now.length === 0) return 'alias-gone';
  const isLed = now.length === 1 && now[0] === live && (await isFiltered(engine, place, live));
  return isLed ? null : 'alias-changed';
}

async function isFiltered(engine: Engine, place: Place, live: string): Promise<boolean> {
  const alias = aliasOf(place);
  const answer = await ask(engine, { method: 'GET', path: `/_alias/${alias}` });
  const read = aliases.safeParse(answer.body);
  if (answer.status !== 200 || !read.success) return false;
  return JSON.stringify(read.data[live]?.aliases[alias]?.filter) === JSON.stringify(HELD);
}

const A_DAY_MS = 86_400_000;

/**
 * Deletes what builders and comparisons of this index have left behind: whatever nobody refers to and is older, by the engine's
 * own clock, than the build that has just gone live. One that is being made at this moment is younger.
 * @throws RetlError
 */
export async function sweep(engine: Engine, place: Place, { live, building }: Directory): Promise<void> {
  if (live === null) return;
  const found = await madeIndexes(engine, place);
  const since = found.find(({ name }) => name === live)?.createdAt ?? 0;
  for (const { name, scratch, createdAt } of found) {
    if (name === live || name === building) continue;
    // A comparison may take long.
    const grace = scratch ? A_DAY_MS : 0;
    if (createdAt + grace < since) await deleteIndex(engine, name);
  }
}
