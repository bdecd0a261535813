/** `retl baseline attest <mirror> --empty`: an operator vouches that a target is new and empty, where nobody else can look. */

import type { Command } from 'commander';
import type { BaselineOrder } from '../../domain/baseline.ts';
import { askBaseline } from '../baseline-process.ts';
import { type Invocation, mirrorArgument, newCommand, requiredMirror } from '../command.ts';
import { confirm, YES_HELP } from '../confirm.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { misused } from '../failures.ts';
import { withJournal } from '../journal.ts';
import { requireKnown } from '../known-mirrors.ts';
import { operatorOf } from '../operator.ts';
import { reasonArgument, reasonOf } from '../reason-argument.ts';
import { asWorker } from '../worker-rights.ts';

export function baselineAttestCommand(): Command {
  return newCommand(
    {
      name: 'attest',
      summary: 'vouch that a target is new and empty, where the adapter cannot look',
      description:
        'A mirror with `baseline: new-empty` needs a target that holds nobody. Where its destination cannot be asked, nothing is ' +
        'sent before somebody vouches for it. Asks the destination first, shows which target it is, asks you, and records your ' +
        'name and reason for good. The word is of this one target: another one needs its own. Nothing is sent.',
      examples: [
        [
          'retl baseline attest vip-customers --empty --because "made the audience this morning"',
          'look at the target, and answer',
        ],
      ],
    },
    (invocation) => asWorker('vouch for a target', () => attest(invocation)),
  )
    .argument('<mirror>', 'name of the mirror', mirrorArgument)
    .option('--empty', 'what is attested: the target holds nobody')
    .option('--because <reason>', 'how you know that it is empty; kept in the journal', reasonArgument)
    .option('--yes', YES_HELP);
}

async function attest(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = requiredMirror(invocation);
  if (options.empty !== true)
    throw misused('baseline attest', 'What is attested? --empty: the target holds nobody.');
  const because = reasonOf(options);
  if (because === null)
    throw misused('baseline attest', 'A reason is needed: --because "how you know that it is empty".');
  await requireKnown(project, mirror);
  const order: BaselineOrder = { verb: 'attest', mirror, confirmed: null };
  const { targetKey } = await askBaseline(project, order, 'attestable');
  output.note(`  target  ${targetKey}`);
  await confirm(
    invocation,
    `The journal takes this target for empty on your word, and keeps it with your name. This cannot be taken back. Go on`,
  );
  const by = await withJournal(project, operatorOf);
  await askBaseline(project, { ...order, confirmed: { targetKey, by, because } }, 'attested');
  output.document({ mirror, attested: 'empty', target: targetKey });
  output.line(`${mirror}: its target counts as empty; \`retl run ${mirror}\` begins`);
  return EXIT.ok;
}
