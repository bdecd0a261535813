/** `retl dev`: everything a project needs on one machine, until Ctrl-C. */

import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import type { Command } from 'commander';
import { inProjectFile, resolveText } from '../../config/secrets.ts';
import type { DevStack, LostServer } from '../../dev/stack.ts';
import type { StackInUse } from '../../dev/stack-lock.ts';
import { type Invocation, newCommand } from '../command.ts';
import { devDataDir, devEnvFile, dropDevEnvironments, writeDevEnvironment } from '../dev-env.ts';
import { DevWorker } from '../dev-worker.ts';
import { type Project, readSettings } from '../environment.ts';
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
    false,
  ).option('--fresh', 'begin with empty servers');
}

async function dev({ output, project, options }: Invocation): Promise<ExitCode> {
  const { journal } = await readSettings(project);
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
  const dataDir = devDataDir(project.dir);
  const { startDevStack } = await import('../../dev/stack.ts');
  const { stackHolder } = await import('../../dev/stack-lock.ts');
  // Also before --fresh, which would take the data from under servers that run.
  const holder = await stackHolder(dataDir);
  if (holder !== null) throw inUse(holder);
  if (options.fresh === true) await rm(dataDir, { recursive: true, force: true });
  output.note('Starting PostgreSQL and Temporal …');
  const stack = await startedOrRefused(() =>
    startDevStack({
      projectFolder: project.dir,
      dataDir,
      keepData: true,
      locked: () => dropDevEnvironments(project.dir),
      notice: (message) => output.note(message),
    }),
  );
  try {
    const environment = await prepare(stack);
    await writeDevEnvironment(project.dir, project.environment, environment);
    announce(output, stack, { environment, file: devEnvFile(project.environment) });
    if (!usesJournalOf(stack, project, { environment, url: journal.url }))
      output.note(
        '`journal.url` of retl.yaml is not RETL_JOURNAL_URL: the worker uses the journal named there.',
      );
    const worker = new DevWorker(output, project, environment);
    const end = Promise.race([stopped.then(() => null), stack.lost]);
    await worker.runUntil(end);
    const lost = await end;
    if (lost !== null) throw serverLost(lost);
  } finally {
    await dropDevEnvironments(project.dir);
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

/** A development stack without its servers is none: what is left of it ends, too. */
function serverLost({ name, logFile }: LostServer): Refusal {
  return new Refusal(
    EXIT.failure,
    'dev-server-lost',
    `${name} has ended by itself, and so does everything else. What is kept in .retl/dev is still there.`,
    `${logFile} may say why; \`retl dev\` starts again.`,
  );
}

async function startedOrRefused(start: () => Promise<DevStack>): Promise<DevStack> {
  const { PortTaken } = await import('../../dev/kept-port.ts');
  try {
    return await start();
  } catch (error) {
    if (!(error instanceof PortTaken)) throw error;
    throw new Refusal(
      EXIT.refused,
      'dev-port-taken',
      error.message,
      'Stop that program (another project’s `retl dev`, perhaps: Ctrl-C there), then start again. `retl dev --fresh` begins with ' +
        `empty servers on another port; without ${error.file} the data stay, and their tables are new targets.`,
    );
  }
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
