/** What a worker can find out before it runs: whether all is well (`--check`), and what a run would do (`--plan`). */

import { attempt, checkMirror, problemOf } from './activities/check.ts';
import { previewRun } from './activities/preview.ts';
import { loadProject } from './config/load.ts';
import { resolveText, secretsOf } from './config/secrets.ts';
import type { CheckLine } from './domain/check.ts';
import { RetlError } from './domain/errors.ts';
import type { ProjectSettings } from './domain/settings.ts';
import { requireSchema } from './journal/migrate.ts';
import { openJournal } from './journal/pool.ts';
import { tellPlan } from './planning/tell-plan.ts';
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
  for await (const line of attempt(null, 'journal', () =>
    checkJournal(setup.projectDir, project.settings.journal.url),
  )) {
    say(line);
  }
  const deps = {
    sources: SOURCES,
    destinations: setup.destinations,
    configuration: configurationOf(setup),
    logger: setup.logger,
  };
  for (const mirror of chosen) for await (const line of checkMirror(deps, mirror)) say(line);
  return good;
}

function configurationFacts({ mirrors, environment, defaultKeys }: ProjectSettings): string {
  const facts = [`${mirrors.length} mirror(s)`];
  if (environment !== null) facts.push(`environment ${environment}`);
  if (defaultKeys.length > 0) facts.push(`retl.yaml gives defaults for ${defaultKeys.join(', ')}`);
  return facts.join('; ');
}

async function checkJournal(projectDir: string, url: string): Promise<string> {
  const { env, readFile } = secretsOf(projectDir);
  const journal = openJournal({ url: resolveText(url, env, readFile), max: 1 });
  try {
    await requireSchema(journal);
    return 'its schema is this version’s';
  } finally {
    await journal.end();
  }
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
