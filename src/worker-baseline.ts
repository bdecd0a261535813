/** The process that imports a baseline, or looks at its file first: it tells what came of it as one JSON line, for the CLI. */

import { importBaseline, inspectBaseline } from './activities/import-baseline.ts';
import { expectValid, loadMirror } from './config/load.ts';
import { resolveText, secretsOf } from './config/secrets.ts';
import type { BaselineLine, BaselineOrder } from './domain/baseline.ts';
import { RetlError } from './domain/errors.ts';
import { requireSchema } from './journal/migrate.ts';
import { openJournal } from './journal/pool.ts';
import { failureOf } from './planning/tell-plan.ts';
import { configurationOf, SOURCES, type WorkerSetup } from './worker-setup.ts';

/** @param order JSON of a {@link BaselineOrder}, as the CLI of this very release writes it. */
export async function baseline(setup: WorkerSetup, order: string): Promise<number> {
  const line = await answer(setup, JSON.parse(order) as BaselineOrder).catch(failureOf);
  process.stdout.write(`${JSON.stringify(line)}\n`);
  return 0;
}

async function answer(setup: WorkerSetup, order: BaselineOrder): Promise<BaselineLine> {
  const { projectDir, destinations } = setup;
  const deps = { sources: SOURCES, destinations, configuration: configurationOf(setup) };
  // Whoever imports needs fewer secrets than a worker: each is looked up where it is used.
  const project = expectValid(await loadMirror(projectDir, order.mirror, { ...deps }, null));
  const [settings] = project.mirrors;
  if (settings === undefined) throw new RetlError('config.unknown-mirror', { mirror: order.mirror });
  const file = { path: order.path, isMapped: order.isMapped };
  if (order.confirmed === null)
    return { kind: 'summary', summary: await inspectBaseline(deps, settings, file) };
  const { env, readFile } = secretsOf(projectDir);
  const journal = openJournal({ url: resolveText(project.journal.url, env, readFile), max: 1 });
  try {
    await requireSchema(journal);
    const members = await importBaseline(deps, journal, settings, { ...file, ...order.confirmed });
    return { kind: 'imported', members };
  } finally {
    await journal.end();
  }
}
