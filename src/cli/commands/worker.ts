/** `retl worker`: runs the worker until it is told to stop. */

import { type Command, Option } from 'commander';
import { resolveMetrics } from '../../config/metrics-schema.ts';
import { type Invocation, newCommand } from '../command.ts';
import { readSettings } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { endOfWorker, isReady, jsonLines, spawnWorker } from '../worker-process.ts';

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
        [
          'retl worker --metrics 127.0.0.1:9465',
          'a second one on this machine, with an address of its own for metrics',
        ],
      ],
    },
    work,
  ).addOption(
    new Option(
      '--metrics <where>',
      'IP address and port to answer Prometheus on, or `off` (default: RETL_METRICS, else `metrics` of retl.yaml)',
    ),
  );
}

async function work({ output, project, options }: Invocation): Promise<ExitCode> {
  // What is wrong with retl.yaml is told here, place by place; all else is for the worker to find.
  const { temporal, metrics } = await readSettings(project, project.secrets);
  const said = typeof options.metrics === 'string' ? options.metrics : process.env.RETL_METRICS;
  const told = resolveMetrics(metrics, project.secrets, said);
  const child = spawnWorker(['--project', project.dir, ...(said ? ['--metrics', said] : [])]);
  const ended = endOfWorker(child);
  for await (const line of jsonLines(child)) {
    if (!isReady(line)) continue;
    const scraped = told.kind === 'prometheus' ? `http://${told.address}/metrics` : null;
    output.event({
      event: 'ready',
      taskQueue: temporal.taskQueue,
      ...(scraped === null ? {} : { metrics: scraped }),
    });
    output.line(`Ready: polling task queue ${temporal.taskQueue}. Ctrl-C stops in order.`);
    if (scraped !== null) output.line(`Metrics: ${scraped}`);
  }
  const end = await ended;
  if (end.kind === 'exited') return end.exit;
  return end.kind === 'interrupted' ? EXIT.interrupted : EXIT.failure;
}
