/**
 * The mirrors that a command may be about: those of this folder, and those that the journal or Temporal knows. A run goes on
 * when its mirror's file is gone, and must be answered, stopped and explained all the same.
 */

import { mirrorFiles } from '../config/mirror-files.ts';
import { nearest } from '../config/nearest.ts';
import { RetlError } from '../domain/errors.ts';
import type { MirrorSummary } from '../journal/inspect.ts';
import type { Project } from './environment.ts';
import { isOutOfReach, isUnavailable } from './failures.ts';
import { readMirrors } from './journal.ts';
import { isPattern } from './mirror-glob.ts';
import { withTemporal } from './temporal.ts';

/** The mirrors that this folder's files configure. */
export async function mirrorNames({ dir }: Project): Promise<readonly string[]> {
  return (await mirrorFiles(dir)).found.map(({ mirror }) => mirror);
}

/**
 * What is known of besides this folder, as far as `named`, names or patterns, asks for it. Where the journal cannot be asked,
 * Temporal says which of them run; where neither is in reach, a name is taken at its word, unless it is nearly one of this folder's.
 */
export async function knownElsewhere(project: Project, named: readonly string[]): Promise<readonly string[]> {
  const here = await mirrorNames(project);
  const strangers = named.filter((name) => !isPattern(name) && !here.includes(name));
  if (strangers.length === 0 && !named.some(isPattern)) return [];
  let journal: readonly MirrorSummary[];
  try {
    journal = await readMirrors(project);
  } catch (error) {
    return isOutOfReach(error) ? withoutJournal(project, strangers, here) : strangers;
  }
  const known = journal.map(({ mirror }) => mirror);
  // A folder without mirrors says nothing about which there are.
  if (here.length === 0) return [...known, ...strangers];
  const rest = strangers.filter((name) => !known.includes(name));
  return rest.length === 0 ? known : [...known, ...(await underWay(project, rest).catch(() => []))];
}

async function withoutJournal(
  project: Project,
  strangers: readonly string[],
  here: readonly string[],
): Promise<readonly string[]> {
  if (here.length === 0 || strangers.length === 0) return strangers;
  const running = await underWay(project, strangers).catch(() => null);
  return running ?? strangers.filter((name) => nearest(name, here) === null);
}

/** Those that run here without having come as far as the journal. @throws RetlError `temporal.connect` */
async function underWay(project: Project, mirrors: readonly string[]): Promise<readonly string[]> {
  const { findRun } = await import('../client/find-run.ts');
  return withTemporal(project, async (temporal) => {
    const found: string[] = [];
    for (const mirror of mirrors) if ((await findRun(temporal, mirror)).kind === 'ours') found.push(mirror);
    return found;
  });
}

/**
 * For commands that need the journal: a mistyped name is caught before anything else is asked. The worker's configuration has the
 * last word, and may be elsewhere: a folder without mirrors refuses nothing. Where the journal is out of reach, its absence is not
 * the first thing to say of a name that is nearly one of this folder's, or on a machine that knows no way to it at all.
 * @throws RetlError `config.unknown-mirror`
 */
export async function requireKnown(project: Project, mirror: string): Promise<void> {
  const names = await mirrorNames(project);
  if (names.length === 0 || names.includes(mirror)) return;
  await readMirrors(project).catch((error: unknown) => {
    if (isOutOfReach(error) && (!isUnavailable(error) || nearest(mirror, names) !== null))
      throw unknownMirror(project, mirror, names);
  });
  const others = await knownElsewhere(project, [mirror]);
  if (!others.includes(mirror)) throw unknownMirror(project, mirror, [...names, ...others]);
}

export function unknownMirror({ dir }: Project, mirror: string, known: readonly string[]): RetlError {
  const names = [...new Set(known)].sort();
  const meant = nearest(mirror, names);
  return new RetlError('config.unknown-mirror', {
    mirror,
    'looked in': dir,
    ...(meant === null ? {} : { 'did you mean': meant }),
    known: names,
  });
}
