/** `retl release <mirror>`: lets a run go whose Temporal cluster is lost for good. */

import type { Command } from 'commander';
import type { HolderState } from '../../client/holder.ts';
import type { HeldRun, Released } from '../../journal/release.ts';
import { type Invocation, mirrorArgument, newCommand, requiredMirror } from '../command.ts';
import { confirm, YES_HELP } from '../confirm.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { misused, Refusal } from '../failures.ts';
import { withJournal } from '../journal.ts';
import { requireKnown } from '../known-mirrors.ts';
import { operatorOf } from '../operator.ts';
import { reasonArgument, reasonOf } from '../reason-argument.ts';
import { withTemporal } from '../temporal.ts';
import { asWorker } from '../worker-rights.ts';

export function releaseCommand(): Command {
  return newCommand(
    {
      name: 'release',
      summary: 'let a run go whose Temporal cluster is lost for good',
      description:
        'The journal names who holds a run, and nobody else takes it over while that execution may be alive. Where its ' +
        'Temporal cluster or namespace is gone for good, nobody can say that it is over: this does, with your reason, which is ' +
        'kept. Whatever is left of it is fenced, and the next `retl run` takes the run over. Refused while Temporal says that ' +
        'the holder is open.',
      examples: [
        [
          'retl release vip-customers --because "the old cluster was deleted"',
          'look at the holder, and answer',
        ],
        ['retl release vip-customers --because "deleted on Friday" --yes', 'in a script'],
      ],
    },
    (invocation) => asWorker('let go of a run for its holder', () => release(invocation)),
  )
    .argument('<mirror>', 'name of the mirror', mirrorArgument)
    .option(
      '--because <reason>',
      'how you know that its Temporal is gone; kept in the journal',
      reasonArgument,
    )
    .option('--yes', YES_HELP);
}

async function release(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = requiredMirror(invocation);
  const because = reasonOf(options);
  if (because === null)
    throw misused('release', 'A reason is needed: --because "how you know that its Temporal is gone".');
  await requireKnown(project, mirror);
  return withJournal(project, async (journal) => {
    const { heldRun, releaseLost } = await import('../../journal/release.ts');
    const held = await heldRun(journal, mirror);
    if (held === null) throw refused(mirror, 'not-held');
    const state = await stateOfHolder(invocation, held);
    show(invocation, mirror, held, state);
    if (state === 'open')
      throw new Refusal(
        EXIT.refused,
        'holder-open',
        `Temporal says that the holder of ${mirror} is open. Nothing was changed.`,
        `\`retl cancel ${mirror}\` stops it; \`retl abort ${mirror}\` gives its snapshot up.`,
      );
    await confirm(invocation, `Declare this execution lost, and let the run of ${mirror} go`, 'yes');
    const result = await releaseLost(journal, held, await operatorOf(journal), because);
    if (result !== 'released') throw refused(mirror, result);
    output.document({ mirror, runId: held.run.toString(), holder: held.holder, released: true });
    output.line(`${mirror}: the run is let go; \`retl run ${mirror}\` takes it over`);
    return EXIT.ok;
  });
}

/** `unreachable`: what this command is for, or Temporal is away for a moment; the person knows which. */
async function stateOfHolder(
  { project }: Invocation,
  { holder }: HeldRun,
): Promise<HolderState | 'unreachable'> {
  const { askHolder } = await import('../../client/holder.ts');
  try {
    return await withTemporal(project, (temporal) => askHolder(temporal, holder));
  } catch {
    return 'unreachable';
  }
}

const STATES: { readonly [S in HolderState | 'unreachable']: string } = {
  open: 'open, by its own Temporal',
  closed: 'over, by its own Temporal: `retl run` would take the run over without this',
  elsewhere: 'not known: the Temporal that is configured here is another one',
  unreachable: 'not known: Temporal cannot be reached from here. If it may come back, wait for it',
};

function show({ output }: Invocation, mirror: string, { run, holder }: HeldRun, state: keyof typeof STATES) {
  output.note(`${output.style('yellow', mirror)}: run ${run}`);
  output.note(`  holder    ${holder.namespace}/${holder.workflowId}, execution ${holder.firstRunId}`);
  output.note(`  cluster   ${holder.cluster === '' ? 'not told' : holder.cluster}`);
  output.note(`  which is  ${STATES[state]}`);
}

function refused(mirror: string, why: Exclude<Released, 'released'>): Refusal {
  const message = {
    'no-such-run': `The journal knows no run of ${mirror}.`,
    closed: `The run of ${mirror} is closed.`,
    'not-held': `Nobody holds a run of ${mirror}.`,
    'other-holder': `Another execution has taken the run of ${mirror} over meanwhile.`,
  }[why];
  return new Refusal(
    EXIT.refused,
    why,
    `${message} Nothing was changed.`,
    `\`retl status ${mirror}\` shows how it stands; \`retl run ${mirror}\` starts or resumes one.`,
  );
}
