/** `retl index run|pause|resume|stop|rebuild|rollback`: has an index follow the log, or be built anew. */

import type { Command } from 'commander';
import type { IndexSignal } from '../../domain/index-messages.ts';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { foreignRefusal } from '../foreign-run.ts';
import { indexOf, indexWork, referenceOf } from '../index-work.ts';
import {
  exitOfWorkflow,
  type IndexWorkflow,
  isAtWork,
  noteWorkflows,
  wakened,
  workflowAfter,
  workflowWords,
} from '../index-workflow.ts';
import { startingOnTemporal } from '../no-worker.ts';
import type { Output } from '../output.ts';
import { withTemporal } from '../temporal.ts';

export function indexRunCommand(): Command {
  return newCommand(
    {
      name: 'run',
      summary: 'have an index follow the log',
      description:
        'Starts the workflow of the index, which follows the log until it is stopped; where it runs, it looks at once. With ' +
        '`--once` this process itself catches up, and ends.',
      examples: [
        ['retl index run people', 'from now on'],
        ['retl index run people --once', 'as far as the log goes, without Temporal'],
      ],
    },
    run,
  )
    .argument('<index>', 'an index of retl.yaml')
    .option('--once', 'catch up in this process, and end');
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const index = await indexOf(invocation);
  return invocation.options.once === true ? catchUp(invocation, index) : haveFollow(invocation, index);
}

/** Says what the workflow does once it was told: it may be paused, or be refused as it was before. */
async function haveFollow(invocation: Invocation, index: string): Promise<ExitCode> {
  const { output } = invocation;
  const { runIndex } = await import('../../client/indexes.ts');
  const { workflowId, workflow } = await startingOnTemporal(invocation, async (temporal) => {
    const found = await runIndex(temporal, index);
    if (found.kind === 'other-queue') throw foreignRefusal(index, found, 'index');
    return { workflowId: found.workflowId, workflow: await workflowAfter(temporal, index) };
  });
  output.document({ index, workflowId, workflow });
  const { state } = workflow;
  const follows = state === 'replaying' || state === 'caught-up';
  const does = state === 'no-worker' ? 'waits for a worker' : workflowWords(workflow);
  output.line(`${index}: ${follows ? 'follows the log' : does} (workflow ${workflowId})`);
  // That no worker is there has been said already.
  if (state !== 'no-worker') noteWorkflows(output, [index], () => workflow);
  return exitOfWorkflow(workflow);
}

async function catchUp({ output, project }: Invocation, index: string): Promise<ExitCode> {
  const [found] = await indexWork(project, 'follow', index);
  if (found?.kind !== 'followed') throw new Error('the process has said nothing of how far it got');
  const { kind: _, ...document } = found;
  output.document(document);
  const how = found.end === 'frozen' ? 'rolled back, and stays' : 'caught up';
  output.line(`${index}: ${how} at position ${found.position}, ${found.rows} rows`);
  return EXIT.ok;
}

const SIGNALS: { readonly [name: string]: { readonly signal: IndexSignal; readonly summary: string } } = {
  pause: { signal: 'pause', summary: 'have an index stay where it is until it is resumed' },
  resume: { signal: 'resume', summary: 'go on after a pause, or try again what was refused' },
  stop: { signal: 'stop', summary: 'end the workflow of an index; its rows stay' },
};

export function indexSignalCommands(): readonly Command[] {
  return Object.entries(SIGNALS).map(([name, { signal, summary }]) =>
    newCommand(
      {
        name,
        summary,
        description: `Sends the signal \`${signal}\` to the workflow of the index, which heeds it between two pages.`,
        examples: [[`retl index ${name} people`, summary]],
      },
      (invocation) => send(invocation, signal),
    ).argument('<index>', 'an index of retl.yaml'),
  );
}

async function send(invocation: Invocation, signal: IndexSignal): Promise<ExitCode> {
  const index = await indexOf(invocation);
  const { signalIndex } = await import('../../client/indexes.ts');
  const { found, workflow } = await withTemporal(invocation.project, async (temporal) => {
    const found = await signalIndex(temporal, index, signal);
    const isTried = signal === 'resume' && found.kind === 'sent';
    return { found, workflow: isTried ? await workflowAfter(temporal, index) : null };
  });
  if (found.kind === 'other-queue') throw foreignRefusal(index, found, 'index');
  if (found.kind === 'not-running')
    throw new Refusal(
      EXIT.refused,
      'not-running',
      `The workflow of the index ${index} does not run.`,
      `\`retl index run ${index}\` starts it.`,
    );
  const { output } = invocation;
  output.document({ index, signal, ...(workflow === null ? {} : { workflow }) });
  output.line(`${index}: ${signal} sent`);
  if (workflow === null) return EXIT.ok;
  noteWorkflows(output, [index], () => workflow);
  return exitOfWorkflow(workflow);
}

export function indexRebuildCommand(): Command {
  return newCommand(
    {
      name: 'rebuild',
      summary: 'build an index anew from the beginning of the log',
      description:
        'Begins a new build beside the one that readers see; it takes that one’s place when it has caught up. It is also ' +
        'the way on from a rollback, and from whatever an index was refused for.',
      examples: [['retl index rebuild people', 'readers notice nothing until it has caught up']],
    },
    async (invocation) => begin(invocation, 'rebuild', []),
  ).argument('<index>', 'an index of retl.yaml');
}

export function indexRollbackCommand(): Command {
  return newCommand(
    {
      name: 'rollback',
      summary: 'build an index anew as it was at a checkpoint',
      description:
        'Begins a new build up to the position of a checkpoint that was kept; once there it takes the live one’s place, and ' +
        'stays. A position that the log has been compacted past is refused.',
      examples: [['retl index rollback people sha256:…', 'as `retl index checkpoints` names it']],
    },
    async (invocation) => begin(invocation, 'rollback', [referenceOf(invocation.args[1])]),
  )
    .argument('<index>', 'an index of retl.yaml')
    .argument('<checkpoint>', 'reference of a checkpoint');
}

async function begin(
  invocation: Invocation,
  verb: 'rebuild' | 'rollback',
  args: readonly string[],
): Promise<ExitCode> {
  const { output, project } = invocation;
  const index = await indexOf(invocation);
  const [begun] = await indexWork(project, verb, index, ...args);
  if (begun?.kind !== 'begun') throw new Error('the process has begun nothing');
  // Its workflow may wait for a person, or for the log to grow.
  const workflow = await wakened(project, index);
  const running = isAtWork(workflow);
  output.document({ index, build: begun.build, goal: begun.goal, running, workflow });
  output.line(
    `${index}: build ${begun.build} begun${begun.goal === null ? '' : `, up to position ${begun.goal}`}`,
  );
  if (!running) noteIdle(output, index, workflow);
  return EXIT.ok;
}

/** Where there is no workflow, `retl index run` does the work, or has it done; another one waits for something else. */
function noteIdle(output: Output, index: string, workflow: IndexWorkflow): void {
  const { state } = workflow;
  const isNone = state === 'not-running' || state === 'unknown';
  output.note(`Nothing works on it yet${isNone ? `: \`retl index run ${index}\` does` : ''}.`);
  if (!isNone) noteWorkflows(output, [index], () => workflow);
}
