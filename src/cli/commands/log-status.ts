/** `retl log status`: where the log begins and ends, its snapshots, and what it takes. */

import type { Command } from 'commander';
import type { LogStatus } from '../../journal/log-status.ts';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { sizeWords } from '../log-view.ts';
import { whole } from '../progress-view.ts';
import { readAllowed } from '../read-rights.ts';
import { ago } from '../run-view.ts';

export function logStatusCommand(): Command {
  return newCommand(
    {
      name: 'status',
      summary: 'where the log begins and ends, and what it takes',
      description:
        'Shows the log’s id, its head and its earliest position, its snapshots, the indexes that hold compaction back, and how ' +
        'much of the disk the journal takes for what. Connects by `journal.reader_url` where retl.yaml names it, else by ' +
        '`journal.url`; needs the role retl_inspector.',
      examples: [
        ['retl log status', 'for people'],
        ['retl log status --json', 'as a JSON document'],
      ],
    },
    status,
  );
}

async function status(invocation: Invocation): Promise<ExitCode> {
  const { output } = invocation;
  const found = await readAllowed(invocation, async (journal) => {
    const { logStatus } = await import('../../journal/log-status.ts');
    return logStatus(journal);
  });
  output.document(found);
  for (const line of linesOf(found, Date.now())) output.line(line);
  return EXIT.ok;
}

export function linesOf(log: LogStatus, now: number): readonly string[] {
  const number = (position: bigint) => whole(Number(position));
  const lines = [
    `log ${log.logId}`,
    `  head      ${number(log.head)}${log.headAt === null ? '' : `, ${ago(log.headAt, now)}`}, ${log.entryHash}`,
    `  earliest  ${number(log.earliest)}${log.earliest === 1n ? ': all of it' : ', after a log snapshot'}`,
  ];
  for (const { id, boundary, state, members } of log.snapshots)
    lines.push(
      state === 'building'
        ? `  snapshot  ${id}, up to ${number(boundary)}: being built; \`retl log compact\` goes on with it`
        : `  snapshot  ${id}, up to ${number(boundary)}: ${number(members)} members${state === 'superseded' ? ', superseded' : ''}`,
    );
  for (const { index, position } of log.holds)
    lines.push(`  held      index ${index} needs what follows ${number(position)}`);
  const { entries, operations, generations, membership, snapshots, batches } = log.bytes;
  lines.push(
    `  on disk   entries ${sizeWords(entries)}, operations ${sizeWords(operations)}, generations ${sizeWords(generations)}, ` +
      `membership ${sizeWords(membership)}, log snapshots ${sizeWords(snapshots)}, batches ${sizeWords(batches)}`,
  );
  return lines;
}
