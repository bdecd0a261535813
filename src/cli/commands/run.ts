/** `retl run <mirror>`: starts a run and follows it. */

import type { Command } from 'commander';
import { type Invocation, mirrorArgument, newCommand, requiredMirror } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { follow } from '../follow.ts';
import { requireKnown } from '../known-mirrors.ts';
import { withTemporal } from '../temporal.ts';

export function runCommand(): Command {
  return newCommand(
    {
      name: 'run',
      summary: 'start a run of a mirror and follow it',
      description:
        'Starts a run of one mirror on Temporal and follows it to its end. A run that was left unfinished is ' +
        'resumed. Ctrl-C never stops a run: on a terminal it asks, elsewhere it only stops following.',
      examples: [
        ['retl run vip-customers', 'start and follow'],
        ['retl run vip-customers --detach', 'start, and return at once'],
        ['retl run vip-customers --json', 'one JSON text per line: started, progress, ended'],
      ],
    },
    run,
  )
    .argument('<mirror>', 'name of the mirror: its file in mirrors/ without .yaml', mirrorArgument)
    .option('--detach', 'return as soon as the run is started');
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = requiredMirror(invocation);
  await requireKnown(project, mirror);
  const { startMirror } = await import('../../client/start.ts');
  return withTemporal(project, async (temporal) => {
    const started = await startMirror(temporal, mirror);
    if (started.kind === 'busy')
      throw new Refusal(
        EXIT.refused,
        'busy',
        `A run of ${mirror} is under way (workflow ${started.workflowId}).`,
        `See it with \`retl status ${mirror}\`; stop it with \`retl cancel ${mirror}\`.`,
      );
    const { workflowId, runId } = started;
    output.event({ event: 'started', mirror, workflowId, runId, namespace: temporal.namespace });
    output.note(`${mirror}: started as ${workflowId}`);
    if (options.detach === true) return EXIT.ok;
    return follow(output, temporal, { mirror, execution: { workflowId, runId } });
  });
}
