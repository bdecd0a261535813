/** `retl log verify`: recomputes the log outside of the database that wrote it. */

import type { Command } from 'commander';
import type { LogVerdict } from '../../journal/verify-log.ts';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { type Journal, withJournal } from '../journal.ts';
import { BROKEN, LongWork } from '../log-view.ts';
import type { Output } from '../output.ts';
import { whole } from '../progress-view.ts';
import { readAllowed } from '../read-rights.ts';

export function logVerifyCommand(): Command {
  return newCommand(
    {
      name: 'verify',
      summary: 'recompute the log, and find what was changed',
      description:
        'Recomputes every entry’s hash and its link to the one before, across log snapshots; the rejections that each entry ' +
        'leaves out; each batch’s id out of its operations; each payload’s hash; and the digest of the newest log snapshot. Names ' +
        'the first position at which something is not what was written, and leaves with 1. It reads as much as a replay does, ' +
        'changes nothing, shows no value, and mirrors may run meanwhile. Connects by `journal.url`; with --entries, which looks ' +
        'at entries and links alone, by `journal.reader_url`, where the role retl_inspector is enough.',
      examples: [
        ['retl log verify', 'everything'],
        ['retl log verify --entries', 'the chain of entries alone, in seconds'],
        ['retl log verify --json', 'as a JSON document'],
      ],
    },
    verify,
  ).option('--entries', 'entries and links alone: no effects, payloads and members');
}

async function verify(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const entriesOnly = options.entries === true;
  const verdict = entriesOnly
    ? await readAllowed(invocation, (journal) => verifyWith(output, journal, false))
    : await withJournal(project, (journal) => verifyWith(output, journal, true));
  output.document({ ...verdict, effects: !entriesOnly });
  if (verdict.kind === 'intact') {
    const what = entriesOnly ? 'entries and links' : 'entries, links, effects and payloads';
    output.line(
      `${output.style('green', 'intact')}: ${what} up to position ${whole(Number(verdict.position))}`,
    );
    return EXIT.ok;
  }
  output.line(
    `${output.style('red', 'broken')} at position ${whole(Number(verdict.position))}: ${BROKEN[verdict.rule]} (${verdict.rule})`,
  );
  output.line('What follows was not looked at. docs/log.md says what to do.');
  return EXIT.failure;
}

/** @throws JournalError; RetlError `journal.*` */
export async function verifyWith(output: Output, journal: Journal, effects: boolean): Promise<LogVerdict> {
  const { requireSchema } = await import('../../journal/migrate.ts');
  const { verifyLog } = await import('../../journal/verify-log.ts');
  await requireSchema(journal);
  const work = new LongWork(output);
  const verdict = await verifyLog(journal, {
    effects,
    progress: (position, head) => work.at('verifying position', position, head),
  });
  work.end();
  return verdict;
}
