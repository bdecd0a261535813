/** `retl dev`: everything a project needs on one machine, until Ctrl-C. */

import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { inProjectFile, resolveText } from '../../config/secrets.ts';
import type { DevStack } from '../../dev/stack.ts';
import type { StackInUse } from '../../dev/stack-lock.ts';
import { type Invocation, newCommand } from '../command.ts';
import { DevWorker } from '../dev-worker.ts';
import { devEnvFile, type Project, readSettings } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import type { Output } from '../output.ts';

export function devCommand(): Command {
  return newCommand(
    {
      name: 'dev',
      summary: 'start everything on this machine: PostgreSQL, Temporal, a worker',
      description:
        'Starts a PostgreSQL server with the journal, a Temporal server with its UI and a worker, until Ctrl-C. Their data ' +
        'is kept in .retl/dev. While it runs, the other commands find it by themselves. Mirrors are read anew for ' +
        'every run; when retl.yaml or .env changes, the worker starts again.',
      examples: [
        ['retl dev', 'start, and stop with Ctrl-C'],
        ['retl dev --fresh', 'forget what earlier starts have kept'],
      ],
    },
    dev,
  ).option('--fresh', 'begin with empty servers');
}

async function dev({ output, project, options }: Invocation): Promise<ExitCode> {
  const { journal } = await readSettings(project);
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  const dataDir = join(project.dir, '.retl', 'dev');
  const { startDevStack } = await import('../../dev/stack.ts');
  const { stackHolder } = await import('../../dev/stack-lock.ts');
  // Also before --fresh, which would take the data from under servers that run.
  const holder = await stackHolder(dataDir);
  if (holder !== null) throw inUse(holder);
  if (options.fresh === true) await rm(dataDir, { recursive: true, force: true });
  output.note('Starting PostgreSQL and Temporal …');
  const stack = await startDevStack({
    projectFolder: project.dir,
    dataDir,
    keepData: true,
    notice: (message) => output.note(message),
  });
  try {
    const environment = await prepare(stack);
    await writeDevEnvironment(project, environment);
    announce(output, stack, { environment, file: devEnvFile(project.environment) });
    if (!usesJournalOf(stack, project, { environment, url: journal.url }))
      output.note(
        '`journal.url` of retl.yaml is not RETL_JOURNAL_URL: the worker uses the journal named there.',
      );
    const worker = new DevWorker(output, project, environment);
    await worker.runUntil(stopped);
  } finally {
    await rm(join(project.dir, devEnvFile(project.environment)), { force: true });
    output.note('Stopping …');
    await stack.stop();
  }
  return EXIT.ok;
}

function inUse({ folder, process: pid, file }: StackInUse): Refusal {
  return new Refusal(
    EXIT.refused,
    'dev-in-use',
    `The development servers of ${folder} are in use by process ${pid ?? 'unknown'}.`,
    `Stop it first (Ctrl-C), or remove ${file} if no such process is yours.`,
  );
}

type Environment = { readonly [name: string]: string };

async function prepare(stack: DevStack): Promise<Environment> {
  const { migrate } = await import('../../journal/migrate.ts');
  const { createPlayground } = await import('../../dev/playground.ts');
  await migrate({ ownerUrl: stack.ownerUrl });
  return {
    RETL_JOURNAL_URL: stack.workerUrl,
    RETL_JOURNAL_OWNER_URL: stack.ownerUrl,
    TEMPORAL_ADDRESS: stack.temporal.address,
    PLAYGROUND_URL: await createPlayground(stack),
  };
}

/** A journal elsewhere may be meant, and may be an environment's that was not meant at all. */
function usesJournalOf(
  stack: DevStack,
  { secrets }: Project,
  { environment, url }: { readonly environment: Environment; readonly url: string },
): boolean {
  try {
    const env = { ...secrets.env, ...environment };
    return resolveText(url, env, secrets.readFile, inProjectFile('journal.url')) === stack.workerUrl;
  } catch {
    return false;
  }
}

/** For the other commands, in other terminals; readable by its owner alone. */
async function writeDevEnvironment(project: Project, environment: Environment): Promise<void> {
  const file = join(project.dir, devEnvFile(project.environment));
  await mkdir(dirname(file), { recursive: true });
  const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(file, lines.join(''), { mode: 0o600 });
  await writeFile(join(project.dir, '.retl', '.gitignore'), '*\n');
}

function announce(
  output: Output,
  stack: DevStack,
  { environment, file }: { readonly environment: Environment; readonly file: string },
): void {
  output.event({ event: 'ready', temporal: stack.temporal.address, ui: stack.temporal.uiUrl });
  if (stack.temporal.uiUrl !== null)
    output.line(`Temporal UI  ${output.style('cyan', stack.temporal.uiUrl)}`);
  output.line(`Temporal     ${stack.temporal.address}`);
  output.line(`Variables    ${Object.keys(environment).join(', ')}`);
  output.line(`             in ${file} while this runs; other commands read it by themselves`);
  output.line();
  output.line(
    'In another terminal: `retl check`, `retl run <mirror>`, `retl status`. Ctrl-C stops everything.',
  );
}
