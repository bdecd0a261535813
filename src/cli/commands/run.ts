/** `retl run <mirror>…`: starts runs and follows them. */

import { type Command, InvalidArgumentError } from 'commander';
import type { TemporalClient } from '../../client/connect.ts';
import type { StartOptions } from '../../client/start.ts';
import { neededWords } from '../../domain/needed.ts';
import { noteChangedTargets } from '../changed-target.ts';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode, worstExit } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { follow } from '../follow.ts';
import { foreignRefusal } from '../foreign-run.ts';
import type { Followed } from '../interrupts.ts';
import { startingOnTemporal } from '../no-worker.ts';
import { parkedWords } from '../parked-view.ts';
import { waitingWords } from '../progress-view.ts';
import { readPlan } from '../saved-plan.ts';
import { addSelection, requiredMirrors } from '../selection.ts';
import { requireValid } from '../valid-mirrors.ts';

export function runCommand(): Command {
  const command = newCommand(
    {
      name: 'run',
      summary: 'start runs of mirrors and follow them',
      description:
        'Starts a run of each mirror on Temporal and follows it to its end. A run that was left unfinished is ' +
        'resumed. Ctrl-C never stops a run: on a terminal it asks, elsewhere it only stops following. A run that would ' +
        'remove more than the mirror allows is parked: a terminal shows what it asks and goes on following, elsewhere ' +
        'the command ends with 4. Of several mirrors, the worst exit code counts.',
      examples: [
        ['retl run vip-customers', 'start and follow'],
        ['retl run "vip-*"', 'all of these at once, a line for each'],
        ['retl run vip-customers --detach', 'start, and return at once'],
        ['retl run vip-customers --approve-up-to 500', 'removals beyond the limits are approved, up to 500'],
        ['retl run vip-customers --plan vip.plan', 'send what `retl plan --out` saved, or nothing'],
        ['retl run vip-customers --json', 'one JSON text per line: started, progress, ended'],
      ],
    },
    run,
  );
  return addSelection(command)
    .option('--detach', 'return as soon as the runs are started')
    .option('--wait', 'go on following a run that is parked or blocked, also where nobody watches')
    .option(
      '--approve-up-to <number>',
      'approve removals beyond the limits, as long as they are no more than this',
      wholeNumber,
    )
    .option('--plan <file>', 'send exactly what `retl plan --out` saved, or nothing; of one mirror');
}

async function run(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  if (options.detach === true && options.wait === true)
    throw new Refusal(
      EXIT.usage,
      'usage',
      '--detach and --wait contradict each other.',
      'Say --detach to return at once, or --wait to follow a run that is parked or blocked.',
    );
  const { mirrors } = await requiredMirrors(invocation);
  const approveUpTo = typeof options.approveUpTo === 'number' ? options.approveUpTo : undefined;
  const plan =
    typeof options.plan === 'string' ? await readPlan(project, onlyOne(mirrors), options.plan) : undefined;
  await requireValid(project, mirrors);
  return startingOnTemporal(invocation, async (temporal) => {
    const started: Followed[] = [];
    const exits: ExitCode[] = [];
    for (const mirror of mirrors) {
      const result = await start(invocation, temporal, mirror, {
        ...(approveUpTo === undefined ? {} : { approveUpTo }),
        ...(plan === undefined ? {} : { plan }),
      });
      if (!(result instanceof Refusal)) started.push(result);
      else if (mirrors.length === 1) throw result;
      else {
        output.event({ event: 'ended', mirror, outcome: result.code, exitCode: result.exit });
        output.line(`${output.style('red', mirror)}: ${result.message}`);
        output.line(`  ${result.remedy}`);
        exits.push(result.exit);
      }
    }
    if (options.detach === true || started.length === 0) return worstExit(exits);
    const ended = await follow(output, temporal, started, { wait: options.wait === true });
    if (ended !== EXIT.interrupted)
      await noteChangedTargets(
        output,
        project,
        started.map(({ mirror }) => mirror),
      );
    return worstExit([...exits, ended]);
  });
}

/** A refusal where a run of it is under way. */
async function start(
  { output }: Invocation,
  temporal: TemporalClient,
  mirror: string,
  options: StartOptions,
): Promise<Followed | Refusal> {
  const { startMirror } = await import('../../client/start.ts');
  const started = await startMirror(temporal, mirror, options);
  if (started.kind === 'busy') return busy(temporal, mirror, started.workflowId);
  if (started.kind === 'other-queue') return foreignRefusal(mirror, started);
  const { workflowId, runId } = started;
  output.event({ event: 'started', mirror, workflowId, runId, namespace: temporal.namespace });
  output.note(`${mirror}: started as ${workflowId}`);
  return { mirror, execution: { workflowId, runId } };
}

function onlyOne(mirrors: readonly string[]): string {
  const [mirror, ...others] = mirrors;
  if (mirror === undefined || others.length > 0)
    throw new Refusal(EXIT.usage, 'usage', 'A saved plan is of one mirror.', 'Name its mirror alone.');
  return mirror;
}

const ANSWER_WITHIN_MS = 2_500;

/** Whoever starts a run that waits for them must be told so: it is their answer that is missing, not a start. */
async function busy(temporal: TemporalClient, mirror: string, workflowId: string): Promise<Refusal> {
  const { readProgress } = await import('../../client/watch.ts');
  const progress = await readProgress(temporal, workflowId, ANSWER_WITHIN_MS);
  const parked = progress?.parked ?? null;
  if (parked !== null)
    return new Refusal(
      EXIT.refused,
      'parked',
      `A run of ${mirror} waits for an answer (workflow ${workflowId}): ${parkedWords(parked)}.`,
      `Look with \`retl plan ${mirror} --identities\`, then answer: \`retl approve ${mirror}\` or \`retl reject ${mirror}\`.`,
    );
  const waiting = progress?.waiting ?? null;
  const needed = waiting === null ? null : neededWords(mirror, waiting);
  if (waiting !== null && needed !== null)
    return new Refusal(
      EXIT.refused,
      waiting.kind,
      `A run of ${mirror} is under way and stands still (workflow ${workflowId}): ${waitingWords(waiting, Date.now())}.`,
      `It needs ${needed}. \`retl status ${mirror}\` shows it.`,
    );
  return new Refusal(
    EXIT.refused,
    'busy',
    `A run of ${mirror} is under way (workflow ${workflowId}).`,
    `See it with \`retl status ${mirror}\`; stop it with \`retl cancel ${mirror}\`.`,
  );
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number))
    throw new InvalidArgumentError('It must be a whole number, of members.');
  return number;
}
