/** The commands that send one signal to the runs of mirrors; each stands in its own file and says what it means. */

import type { Command } from 'commander';
import type { TemporalClient } from '../client/connect.ts';
import type { SignalResult } from '../client/control.ts';
import { assertNever } from '../domain/assert-never.ts';
import type { SignalName } from '../domain/messages.ts';
import { type CommandText, type Invocation, newCommand } from './command.ts';
import { confirm, YES_HELP } from './confirm.ts';
import type { Project } from './environment.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { foreignRefusal, foreignWords } from './foreign-run.ts';
import { holderOf } from './journal.ts';
import { knownElsewhere } from './known-mirrors.ts';
import { counted } from './problems-view.ts';
import { addSelection, requiredMirrors, type Selection } from './selection.ts';
import { withTemporal } from './temporal.ts';

export interface ControlText extends Omit<CommandText, 'name'> {
  /** Said once the signal is on its way. */
  readonly sent: string;
  /** What it does to the runs that a pattern stands for; then a person is asked first. */
  readonly asks?: string;
}

export function controlCommand(signal: SignalName, text: ControlText): Command {
  const command = addSelection(
    newCommand({ name: signal, ...text }, (invocation) => send(invocation, signal, text)),
  );
  return text.asks === undefined ? command : command.option('--yes', YES_HELP);
}

async function send(invocation: Invocation, signal: SignalName, text: ControlText): Promise<ExitCode> {
  const { output, project } = invocation;
  const selection = await requiredMirrors(
    invocation,
    await knownElsewhere(invocation.project, invocation.args),
  );
  const { signalMirror } = await import('../client/control.ts');
  return withTemporal(project, async (temporal) => {
    const chosen = await toSignal(project, temporal, selection);
    if (selection.isBroad && text.asks !== undefined) await ask(invocation, chosen, text.asks);
    const results = [];
    for (const { mirror, workflowId } of chosen)
      results.push({ mirror, ...(await signalMirror(temporal, mirror, signal, workflowId)) });
    // One mirror alone is refused in the form of every refusal.
    const [only] = results;
    if (results.length === 1 && only?.kind === 'other-queue') throw foreignRefusal(only.mirror, only);
    if (results.every(({ kind }) => kind === 'not-running'))
      throw nothingRuns(results.map(({ mirror }) => mirror));
    output.document({ signal, mirrors: results });
    for (const result of results) output.line(`${result.mirror}: ${resultWords(result, text)}`);
    return results.every(({ kind }) => kind === 'sent') ? EXIT.ok : EXIT.refused;
  });
}

function resultWords(result: SignalResult, { sent }: ControlText): string {
  switch (result.kind) {
    case 'sent':
      return sent;
    case 'not-running':
      return 'no run is under way';
    case 'other-queue':
      return foreignWords(result);
    default:
      return assertNever(result);
  }
}

interface Target {
  readonly mirror: string;
  /** `undefined`: nobody knows; Temporal is asked. */
  readonly workflowId: string | undefined;
}

/**
 * A run may have been started by hand or by a schedule, under another workflow id: the journal knows. A pattern stands for
 * mirrors with a run under way; a name is taken at its word.
 */
async function toSignal(
  project: Project,
  temporal: TemporalClient,
  { mirrors, isBroad }: Selection,
): Promise<readonly Target[]> {
  const { findRun } = await import('../client/find-run.ts');
  const targets: Target[] = [];
  for (const mirror of mirrors) {
    const workflowId = await holderOf(project, mirror, temporal.namespace);
    const isOpen = !isBroad || (await findRun(temporal, mirror, workflowId)).kind === 'ours';
    if (isOpen) targets.push({ mirror, workflowId });
  }
  if (targets.length === 0) throw nothingRuns(mirrors);
  return targets;
}

async function ask(invocation: Invocation, targets: readonly Target[], what: string): Promise<void> {
  const { output } = invocation;
  output.note(`${counted(targets.length, 'run')} under way:`);
  for (const { mirror } of targets) output.note(`  ${mirror}`);
  await confirm(invocation, what);
}

function nothingRuns(mirrors: readonly string[]): Refusal {
  const [only] = mirrors;
  if (mirrors.length === 1 && only !== undefined)
    return new Refusal(
      EXIT.refused,
      'not-running',
      `No run of ${only} is under way.`,
      `\`retl runs ${only}\` lists the last ones; \`retl run ${only}\` starts or resumes one.`,
    );
  return new Refusal(
    EXIT.refused,
    'not-running',
    `No run is under way, of ${counted(mirrors.length, 'mirror')}.`,
    '`retl status` shows how each stands.',
  );
}
