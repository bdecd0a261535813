/** `retl worker`: runs the worker until it is told to stop. */

import type { Command } from 'commander';
import { type Invocation, newCommand } from '../command.ts';
import { readSettings } from '../environment.ts';
import type { ExitCode } from '../exit-codes.ts';
import { exitOfWorker, isReady, jsonLines, spawnWorker } from '../worker-process.ts';

export function workerCommand(): Command {
  return newCommand(
    {
      name: 'worker',
      summary: 'run a worker until it is stopped',
      description:
        'Runs a worker of this project: it polls Temporal’s task queue, reads sources and writes to destinations. ' +
        'SIGTERM and SIGINT stop it in order: requests under way are finished and recorded, and another worker goes on. ' +
        'Any number of workers may run at once.',
      examples: [
        ['retl worker', 'run a worker of the project in this folder'],
        ['retl worker --project /srv/mirrors', 'of another folder'],
      ],
    },
    work,
  );
}

async function work({ output, project }: Invocation): Promise<ExitCode> {
  // What is wrong with retl.yaml is told here, place by place; all else is for the worker to find.
  const { temporal } = await readSettings(project, project.secrets);
  const child = spawnWorker(['--project', project.dir]);
  const ended = exitOfWorker(child);
  for await (const line of jsonLines(child)) {
    if (!isReady(line)) continue;
    output.event({ event: 'ready', taskQueue: temporal.taskQueue });
    output.line(`Ready: polling task queue ${temporal.taskQueue}. Ctrl-C stops in order.`);
  }
  return ended;
}
