/**
 * What can be found out about indexes and the stores of their checkpoints (design.md section 7) without changing what anybody
 * sees: for `retl check` of a whole project, since no run of a mirror needs one of them.
 */

import { attempt, problemOf } from './activities/check.ts';
import type { CheckLine } from './domain/check.ts';
import { ERROR_CODES, RetlError } from './domain/errors.ts';
import type { IndexSettings, ProjectSettings } from './domain/settings.ts';
import type { Indexer } from './indexing/indexer.ts';
import { refuseBuild } from './indexing/resume.ts';
import type { JournalPool } from './journal/runs.ts';
import { projectArtifacts, storesToLookAt } from './worker-artifacts.ts';
import { openIndexer } from './worker-index.ts';

/** @param journal with this release's schema */
export async function* checkIndexes(
  projectDir: string,
  settings: Pick<ProjectSettings, 'artifacts' | 'indexes' | 'journal'>,
  journal: JournalPool,
): AsyncGenerator<CheckLine, void> {
  for (const { place, look } of storesToLookAt(projectDir, settings.artifacts, journal))
    yield* attempt(null, 'artifacts', async () => `${place}: ${await look()}`, place);
  const deps = { journal, artifacts: projectArtifacts(projectDir, journal) };
  for (const index of settings.indexes) yield* checkIndex(projectDir, settings.journal.url, index, deps);
}

type Deps = Parameters<typeof refuseBuild>[0];

async function* checkIndex(
  projectDir: string,
  journalUrl: string,
  settings: IndexSettings,
  deps: Deps,
): AsyncGenerator<CheckLine, void> {
  const path = `indexes.${settings.name}`;
  let indexer: Indexer;
  try {
    indexer = await openIndexer(projectDir, settings, journalUrl);
  } catch (error) {
    yield problemOf(null, 'index', error, path);
    return;
  }
  const hints: CheckLine[] = [];
  try {
    const look = async () => {
      await indexer.look();
      const found = await findings(deps, indexer);
      for (const message of found.hints)
        hints.push({ kind: 'hint', mirror: null, subject: 'index', message: `${settings.name}: ${message}` });
      return `${settings.name}: ${settings.engine?.system ?? 'postgres'}, ${found.facts}`;
    };
    yield* attempt(null, 'index', look, path);
    yield* hints;
  } finally {
    await indexer.close();
  }
}

/** As far as that can be seen without building. */
const RIGHTS = 'reachable, with the rights to build it';

/** Those that whoever follows the log mends by himself. */
const MENDED = /^(view|alias)-/;

interface Findings {
  readonly facts: string;
  readonly hints: readonly string[];
}

/** @throws RetlError with whatever a person must look at before a build goes on */
async function findings(deps: Deps, indexer: Indexer): Promise<Findings> {
  const builds = await indexer.builds();
  if (builds.length === 0) return { facts: `${RIGHTS}, not built yet`, hints: [] };
  const hints: string[] = [];
  for (const build of builds) {
    const refusal = await refuseBuild(deps, indexer, build);
    if (refusal === null) continue;
    if (refusal.remedy === 'stop') throw new RetlError(refusal.code, refusal.details);
    hints.push(`${ERROR_CODES[refusal.code].meaning} It will be built anew by itself.`);
  }
  const astray = await indexer.astray();
  if (astray !== null && !MENDED.test(astray))
    throw new RetlError('index.misconfigured', { rule: astray, index: indexer.definition.name });
  if (astray !== null)
    hints.push(
      `Readers are not led to the live build (${astray}); they are again once the index follows the log next.`,
    );
  const told = builds.map(({ state, mark }) => `${state} at position ${mark?.position ?? 0n}`);
  return { facts: `${RIGHTS}, ${told.join(', ')}`, hints };
}
