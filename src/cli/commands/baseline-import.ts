/** `retl baseline import <mirror> --from <file>`: takes a list of all members of a target into the journal; nothing is sent. */

import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import type { BaselineSummary } from '../../domain/baseline.ts';
import { RetlError } from '../../domain/errors.ts';
import { askBaseline } from '../baseline-process.ts';
import { type Invocation, mirrorArgument, newCommand, requiredMirror } from '../command.ts';
import { confirm, YES_HELP } from '../confirm.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { misused } from '../failures.ts';
import { withJournal } from '../journal.ts';
import { requireKnown } from '../known-mirrors.ts';
import { operatorOf } from '../operator.ts';
import { counted } from '../problems-view.ts';
import { whole } from '../progress-view.ts';
import { reasonArgument, reasonOf } from '../reason-argument.ts';
import { asWorker } from '../worker-rights.ts';

export function baselineImportCommand(): Command {
  return (
    newCommand(
      {
        name: 'import',
        summary: 'import every member that a target holds, from a file',
        description:
          'Reads a file that lists every member of the target, one a row, with the columns of the query that the identity is ' +
          'made of (.csv with a header, or .ndjson), and maps it as the rows of the query are mapped. Shows how many there are, ' +
          'asks, and records them as held, with your reason, for good. Nothing is sent, and the destination is not called. The ' +
          'first run then sends what is missing or differs, and removes what no row gives, within the limits of `safety`.',
        examples: [
          [
            'retl baseline import vip-customers --from audience.csv --because "export of Monday"',
            'look at the file, and answer',
          ],
          [
            'retl baseline import vip-customers --from members.ndjson --mapped --because "export of Monday" --yes',
            'rows are members: {"identity": {"email": "…"}}',
          ],
        ],
      },
      (invocation) => asWorker('import a baseline', () => importFile(invocation)),
    )
      .argument('<mirror>', 'name of the mirror', mirrorArgument)
      .option('--from <file>', 'lists every member of the target: .csv, .ndjson or .jsonl', fileArgument)
      .option('--mapped', 'rows are members already, and not rows of the query')
      .option(
        '--because <reason>',
        'how you know that the list is whole; kept in the journal',
        reasonArgument,
      )
      .option('--yes', YES_HELP)
      // A file in the place of an argument is answered with the option that is meant.
      .allowExcessArguments()
  );
}

function fileArgument(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('The file’s name is empty.');
  return text;
}

async function importFile(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = requiredMirror(invocation);
  const { from } = options;
  if (invocation.args.length > 1)
    throw misused('baseline import', 'too many arguments: say the file with --from <file>.');
  if (typeof from !== 'string')
    throw misused('baseline import', 'Which file lists the members? --from <file>.');
  const because = reasonOf(options);
  if (because === null)
    throw misused('baseline import', 'A reason is needed: --because "how you know that the list is whole".');
  await requireKnown(project, mirror);
  const order = { verb: 'import', mirror, path: resolve(from), isMapped: options.mapped === true } as const;
  const { summary } = await ofFile(from, () =>
    askBaseline(project, { ...order, confirmed: null }, 'summary'),
  );
  for (const line of summaryLines(summary)) output.note(`  ${line}`);
  await confirm(
    invocation,
    `The journal takes ${counted(summary.members, 'member')} for held by the target of ${mirror}, and for all that it holds. This cannot be taken back. Go on`,
  );
  const by = await withJournal(project, operatorOf);
  const confirmed = { digest: summary.digest, by, because };
  const done = await ofFile(from, () => askBaseline(project, { ...order, confirmed }, 'imported'));
  const { rows, members, collapsed, unknown } = summary;
  output.document({ mirror, imported: done.members, rows, collapsed, payloadsLack: unknown });
  output.line(
    `${mirror}: ${counted(members, 'member')} imported; \`retl plan ${mirror}\` shows what a run would do`,
  );
  return EXIT.ok;
}

/** What is wrong in the file is told with its name as it was typed: to this terminal alone, for no path goes into the journal. */
async function ofFile<T>(file: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof RetlError) || !error.code.startsWith('data.')) throw error;
    throw new RetlError(error.code, { file, ...error.details });
  }
}

function summaryLines({ rows, members, collapsed, unknown }: BaselineSummary): readonly string[] {
  const lines = [`rows      ${whole(rows)}`, `members   ${whole(members)}`];
  if (collapsed > 0) lines.push(`repeated  ${whole(collapsed)}`);
  if (unknown.length > 0)
    lines.push(
      `payloads  not known: no ${unknown.join(', ')}. The first run sends every member that stays once`,
    );
  return lines;
}
