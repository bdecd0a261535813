/** `retl runs [mirror]`: the last runs in the journal. */

import type { Command } from 'commander';
import { type Invocation, mirrorArgument, mirrorOf, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { readRuns } from '../journal.ts';
import { limitArgument, limitOf } from '../limit-argument.ts';
import { whole } from '../progress-view.ts';
import { ago, reasonOf, stateOf } from '../run-view.ts';

export function runsCommand(): Command {
  return newCommand(
    {
      name: 'runs',
      summary: 'list the last runs',
      description: 'Lists the last runs in the journal, newest first, with the counts of all their attempts.',
      examples: [
        ['retl runs', 'of every mirror'],
        ['retl runs vip-customers --limit 5', 'the last five of one mirror'],
        ['retl runs --json', 'as a JSON document'],
      ],
    },
    runs,
  )
    .argument('[mirror]', 'name of one mirror', mirrorArgument)
    .option('--limit <number>', 'how many at most', limitArgument, 20);
}

async function runs(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const found = await readRuns(project, mirrorOf(invocation), limitOf(options));
  output.document({ runs: found });
  if (found.length === 0) output.line('No runs yet. `retl run <mirror>` starts one.');
  else {
    const now = Date.now();
    const rows = found.map((run) => [
      run.runId,
      run.mirror,
      stateOf(run),
      ago(run.openedAt, now),
      whole(run.counts.added),
      whole(run.counts.changed),
      whole(run.counts.removed),
      whole(run.counts.unchanged),
      whole(run.counts.rejected),
      reasonOf(run),
    ]);
    const head = [
      'RUN',
      'MIRROR',
      'STATE',
      'STARTED',
      'ADDED',
      'CHANGED',
      'REMOVED',
      'UNCHANGED',
      'REJECTED',
      'REASON',
    ];
    output.table([head, ...rows]);
  }
  return EXIT.ok;
}
