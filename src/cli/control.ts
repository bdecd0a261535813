/** The commands that send one signal to the run of a mirror; each stands in its own file and says what it means. */

import type { Command } from 'commander';
import type { SignalName } from '../domain/messages.ts';
import { type CommandText, type Invocation, mirrorArgument, newCommand, requiredMirror } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { holderOf } from './journal.ts';
import { requireKnown } from './known-mirrors.ts';
import { withTemporal } from './temporal.ts';

export interface ControlText extends Omit<CommandText, 'name'> {
  /** Said once the signal is on its way. */
  readonly sent: string;
}

export function controlCommand(signal: SignalName, text: ControlText): Command {
  return newCommand({ name: signal, ...text }, (invocation) => send(invocation, signal, text.sent)).argument(
    '<mirror>',
    'name of the mirror',
    mirrorArgument,
  );
}

async function send(invocation: Invocation, signal: SignalName, sent: string): Promise<ExitCode> {
  const { output, project } = invocation;
  const mirror = requiredMirror(invocation);
  await requireKnown(project, mirror);
  const { signalMirror } = await import('../client/control.ts');
  return withTemporal(project, async (temporal) => {
    // A run may have been started by hand or by a schedule, under another workflow id: the journal knows.
    const workflowId = await holderOf(project, mirror, temporal.namespace);
    const result = await signalMirror(temporal, mirror, signal, workflowId);
    if (result.kind === 'not-running')
      throw new Refusal(
        EXIT.refused,
        'not-running',
        `No run of ${mirror} is under way.`,
        `\`retl runs ${mirror}\` lists the last ones; \`retl run ${mirror}\` starts or resumes one.`,
      );
    output.document({ mirror, signal, workflowId: result.workflowId });
    output.line(`${mirror}: ${sent}`);
    return EXIT.ok;
  });
}
