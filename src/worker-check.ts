/** What a worker can find out before it runs: whether all is well (`--check`), and what a run would do (`--plan`). */

import { type BoundDestination, bindDestination } from './activities/binding.ts';
import { attempt, checkMirror, problemOf } from './activities/check.ts';
import { previewRun } from './activities/preview.ts';
import { loadProject } from './config/load.ts';
import type { CheckLine } from './domain/check.ts';
import { RetlError } from './domain/errors.ts';
import { movedWords } from './domain/messages.ts';
import type { MirrorSettings, ProjectSettings } from './domain/settings.ts';
import { consistently } from './journal/pool.ts';
import type { JournalPool } from './journal/runs.ts';
import { ownerAmong, type Standing, standingOf } from './journal/standing.ts';
import {
  requireBaseline,
  requireIdentity,
  requireOwnTarget,
  requireStrategy,
} from './planning/admissible.ts';
import { movedOf } from './planning/moved.ts';
import { tellPlan } from './planning/tell-plan.ts';
import { checkIndexes } from './worker-check-indexes.ts';
import { withJournal } from './worker-journal.ts';
import { configurationOf, SOURCES, type WorkerSetup } from './worker-setup.ts';

/** Prints findings as JSON lines; resolves to whether all is well. */
export async function check(setup: WorkerSetup, names: readonly string[]): Promise<boolean> {
  let good = true;
  const say = (line: CheckLine) => {
    good &&= line.kind === 'passed';
    process.stdout.write(`${JSON.stringify(line)}\n`);
  };
  const project = await loadProject(setup.projectDir, { sources: SOURCES, destinations: setup.destinations });
  if (project.kind === 'invalid') {
    for (const p of project.problems) {
      say({
        kind: 'problem',
        mirror: null,
        subject: 'configuration',
        code: 'config.invalid',
        place: `${p.file}${p.line === null ? '' : `:${p.line}:${p.column}`}`,
        path: p.path,
        message: p.message,
        remedy: p.remedy,
      });
    }
    return good;
  }
  const chosen = project.settings.mirrors.filter((m) => names.length === 0 || names.includes(m.mirror));
  for (const name of names) {
    if (!chosen.some((m) => m.mirror === name)) {
      say(problemOf(name, 'configuration', new RetlError('config.unknown-mirror', { mirror: name })));
    }
  }
  say({
    kind: 'passed',
    mirror: null,
    subject: 'configuration',
    facts: configurationFacts(project.settings),
  });
  const inJournal = <T>(work: (journal: JournalPool) => Promise<T>) =>
    withJournal(setup.projectDir, project.settings.journal, work);
  let hasJournal = true;
  for await (const line of attempt(null, 'journal', () =>
    inJournal(async () => 'its schema is this version’s'),
  )) {
    hasJournal = line.kind === 'passed';
    say(line);
  }
  if (names.length === 0 && hasJournal)
    await inJournal(async (journal) => {
      for await (const line of checkIndexes(setup.projectDir, project.settings, journal)) say(line);
    });
  const deps = {
    sources: SOURCES,
    destinations: setup.destinations,
    configuration: configurationOf(setup),
    logger: setup.logger,
  };
  const places = new Map(project.settings.mirrors.map((m) => [m.mirror, placeOf(deps, m)]));
  const ownerOf = async ({ mirror }: MirrorSettings, keys: readonly string[]) =>
    hasJournal
      ? await inJournal((journal) => consistently(journal, (db) => ownerAmong(db, mirror, keys)))
      : null;
  for (const mirror of chosen) {
    const { targetKey, route, removesFrom, identityForm } =
      places.get(mirror.mirror) ?? placeOf(deps, mirror);
    const standing = hasJournal ? await inJournal((journal) => standingIn(journal, mirror, targetKey)) : null;
    const isKnown = (standing?.target?.proof ?? null) !== null;
    for await (const line of checkMirror(deps, mirror, isKnown)) say(line);
    const shared = sharedTarget(mirror.mirror, standing, places);
    if (shared !== null) say(problemOf(mirror.mirror, 'destination', shared));
    const owner = removedFrom(mirror.mirror, places) ?? (await ownerOf(mirror, removesFrom));
    if (owner !== null)
      say(
        problemOf(
          mirror.mirror,
          'destination',
          new RetlError('run.removes-elsewhere', { mirror: mirror.mirror, owner }),
        ),
      );
    if (standing === null) continue;
    const facts = async () => standingFacts(standing, { targetKey, identityForm }, mirror);
    for await (const line of attempt(mirror.mirror, 'journal', facts)) say(line);
    for (const message of whatWillBeAsked(standing, route))
      say({ kind: 'hint', mirror: mirror.mirror, subject: 'journal', message });
  }
  return good;
}

function configurationFacts({ mirrors, environment, defaultKeys }: ProjectSettings): string {
  const facts = [`${mirrors.length} mirror(s)`];
  if (environment !== null) facts.push(`environment ${environment}`);
  if (defaultKeys.length > 0) facts.push(`retl.yaml gives defaults for ${defaultKeys.join(', ')}`);
  return facts.join('; ');
}

/** How a mirror stands, looked up, with nothing written. */
function standingIn(journal: JournalPool, { mirror }: MirrorSettings, targetKey: string): Promise<Standing> {
  return consistently(journal, (db) => standingOf(db, mirror, targetKey));
}

/** What admission would refuse. @throws RetlError */
function standingFacts(
  standing: Standing,
  { targetKey, identityForm }: Pick<Place, 'targetKey' | 'identityForm'>,
  settings: MirrorSettings,
): string {
  requireStrategy(standing, settings);
  requireOwnTarget(standing, settings);
  if (targetKey !== '') requireBaseline(standing, settings);
  requireIdentity(standing, settings, identityForm);
  if (standing.strategy === null) return 'it has never run';
  return standing.target === null ? 'its target is new' : 'its strategy and its target are its own';
}

type Place = Pick<BoundDestination, 'targetKey' | 'route' | 'removesFrom' | 'identityForm'>;

/** Other mirrors of the project lead to this one's target, which none of them owns: where one does, the journal tells the others. */
function sharedTarget(
  mirror: string,
  standing: Standing | null,
  places: ReadonlyMap<string, Place>,
): RetlError | null {
  const own = places.get(mirror)?.targetKey ?? '';
  if (own === '' || (standing !== null && standing.target !== null)) return null;
  const rivals = [...places].filter(([other, { targetKey }]) => other !== mirror && targetKey === own);
  if (rivals.length === 0) return null;
  return new RetlError('config.target-shared', { mirror, 'also of': rivals.map(([other]) => other) });
}

/** The mirror of the project into whose target this one's removals would go, whether it has run or not; `null`: none. */
function removedFrom(mirror: string, places: ReadonlyMap<string, Place>): string | null {
  const reached = places.get(mirror)?.removesFrom ?? [];
  const found = [...places].find(([other, { targetKey }]) => other !== mirror && reached.includes(targetKey));
  return found === undefined ? null : found[0];
}

/** `''` is nobody's target: a destination that cannot be bound is told of elsewhere. */
function placeOf(deps: Parameters<typeof bindDestination>[0], settings: MirrorSettings): Place {
  try {
    return bindDestination(deps, settings);
  } catch {
    return { targetKey: '', route: null, removesFrom: [], identityForm: '' };
  }
}

/** What the guard will ask of the next run, whatever the source gives. */
function whatWillBeAsked({ target }: Standing, route: BoundDestination['route']): readonly string[] {
  const moved = target !== null && target.held > 0 ? movedOf(target.route, route) : null;
  if (moved === null) return [];
  return [
    `The next run will park with nothing sent (${moved}): it would ${movedWords(moved)}. Look at what was changed, then approve or reject it.`,
  ];
}

/** Prints a plan as JSON lines; what is wrong is one of them. */
export async function plan(setup: WorkerSetup, mirror: string, identities?: string): Promise<number> {
  const { projectDir, destinations } = setup;
  const types = { sources: SOURCES, destinations };
  const deps = { ...types, configuration: configurationOf(setup) };
  const limit = identities === undefined ? null : Number(identities);
  await tellPlan(
    { projectDir, mirror, types, identities: limit },
    (...asked) => previewRun(deps, ...asked),
    (line) => process.stdout.write(`${JSON.stringify(line)}\n`),
  );
  return 0;
}
