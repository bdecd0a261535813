/** `retl baseline verify <mirror>`: what the target says that it holds, against what the journal knows; or makes it the baseline. */

import type { Command } from 'commander';
import type { BaselineOrder, Verification } from '../../domain/baseline.ts';
import { askBaseline } from '../baseline-process.ts';
import { type Invocation, mirrorArgument, newCommand, requiredMirror } from '../command.ts';
import { confirm, YES_HELP } from '../confirm.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { misused } from '../failures.ts';
import { withJournal } from '../journal.ts';
import { requireKnown } from '../known-mirrors.ts';
import { operatorOf } from '../operator.ts';
import type { Output } from '../output.ts';
import { counted } from '../problems-view.ts';
import { whole } from '../progress-view.ts';
import { reasonArgument, reasonOf } from '../reason-argument.ts';
import { SHOWN, shownArgument, shownOf } from '../shown-argument.ts';
import { harmless } from '../value-text.ts';
import { asWorker } from '../worker-rights.ts';

export function baselineVerifyCommand(): Command {
  return newCommand(
    {
      name: 'verify',
      summary: 'compare what a target holds with what the journal knows of it',
      description:
        'Has the destination list what it holds, and compares that with the members that the journal holds, or with an imported ' +
        'baseline before the first run: how many are missing, unexpected, or have another payload. Changes nothing anywhere. Exits ' +
        'with 0 where both agree, else with 10. Needs a role with retl_reader or the worker’s; --identities shows values and needs ' +
        'retl_reader. With --adopt, and `baseline: tracked`, what is listed becomes the baseline, for good.',
      examples: [
        ['retl baseline verify vip-customers', 'counts'],
        ['retl baseline verify vip-customers --identities', 'the first 20 members of each kind'],
        [
          'retl baseline verify vip-customers --adopt --because "the old job was stopped before"',
          'before the first run: take what is listed for the baseline',
        ],
      ],
    },
    (invocation) =>
      invocation.options.adopt === true
        ? asWorker('make a baseline known', () => adopt(invocation))
        : verify(invocation),
  )
    .argument('<mirror>', 'name of the mirror', mirrorArgument)
    .option(
      '--identities [number]',
      `show members by their values, the first ${SHOWN} of each kind`,
      shownArgument,
    )
    .option('--adopt', 'take what is listed for the baseline of a tracked target')
    .option(
      '--because <reason>',
      'with --adopt: how you know that nobody else writes there; kept',
      reasonArgument,
    )
    .option('--yes', YES_HELP);
}

async function verify(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = requiredMirror(invocation);
  await requireKnown(project, mirror);
  const order: BaselineOrder = { verb: 'verify', mirror, identities: shownOf(options.identities) };
  const { verification } = await askBaseline(project, order, 'verified', (rows) =>
    output.redraw([`${mirror}: ${whole(rows)} members listed`]),
  );
  output.redraw([]);
  output.document(verification);
  show(output, verification);
  return differs(verification) ? EXIT.changes : EXIT.ok;
}

function differs({ missing, unexpected, different, repeated }: Verification): boolean {
  return missing + unexpected + different + repeated > 0;
}

function show(output: Output, found: Verification): void {
  const { mirror, held, listed, identities } = found;
  const verdict = differs(found) ? output.style('red', 'differs') : 'agrees';
  output.line(`${output.style('bold', mirror)}  the target ${verdict} with the journal`);
  output.line(
    `  journal      ${counted(held, 'member')}${found.known ? '' : ': nobody has told it what the target held'}`,
  );
  output.line(`  target       ${counted(listed, 'member')}`);
  for (const [name, count, meaning] of rowsOf(found))
    if (count > 0) output.line(`  ${name.padEnd(12)} ${whole(count)}: ${meaning}`);
  if (found.unresolvedBatches > 0)
    output.note(
      `  ${counted(found.unresolvedBatches, 'request')} of an open run may or may not have been applied`,
    );
  if (found.moving)
    output.note(
      '  a run was under way: what it was sending may be among these; verify again once it has ended',
    );
  if (identities === null) return;
  for (const kind of ['missing', 'unexpected', 'different'] as const)
    for (const identity of identities[kind])
      output.line(`  ${kind.padEnd(12)} ${harmless(JSON.stringify(identity))}`);
}

function rowsOf(found: Verification): readonly (readonly [string, number, string])[] {
  return [
    ['same', found.same, 'there as they were accepted'],
    ['missing', found.missing, 'held by the journal’s word, and not there'],
    ['unexpected', found.unexpected, 'there, and the journal does not know of them'],
    ['different', found.different, 'there with another payload than was accepted'],
    ['not compared', found.uncompared, 'there; their payloads are not told, or not known'],
    ['repeated', found.repeated, 'told of more than once'],
  ];
}

async function adopt(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = requiredMirror(invocation);
  const because = reasonOf(options);
  if (because === null)
    throw misused(
      'baseline verify',
      'A reason is needed: --because "how you know that nobody else writes there".',
    );
  await requireKnown(project, mirror);
  const order: BaselineOrder = { verb: 'adopt', mirror, confirmed: null };
  const onProgress = (rows: number) => output.redraw([`${mirror}: ${whole(rows)} members listed`]);
  const { summary } = await askBaseline(project, order, 'summary', onProgress);
  output.redraw([]);
  output.note(`  members  ${whole(summary.members)}`);
  await confirm(
    invocation,
    `The journal takes ${counted(summary.members, 'member')} for held by the target of ${mirror}, and for all that it holds. This cannot be taken back. Go on`,
  );
  const by = await withJournal(project, operatorOf);
  const confirmed = { digest: summary.digest, by, because };
  const done = await askBaseline(project, { ...order, confirmed }, 'imported', onProgress);
  output.redraw([]);
  output.document({ mirror, adopted: done.members });
  output.line(
    `${mirror}: ${counted(done.members, 'member')} are the baseline; \`retl plan ${mirror}\` shows what a run would do`,
  );
  return EXIT.ok;
}
