/** `retl runs [mirror]…`: the last runs in the journal. */

import { type Command, Option } from 'commander';
import { RUN_STATES, type RunState } from '../../domain/run.ts';
import type { RunSummary } from '../../journal/inspect.ts';
import { choicesIn } from '../choice-argument.ts';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { readMirrors, readParked, readRuns } from '../journal.ts';
import { limitArgument, limitOf } from '../limit-argument.ts';
import { whole } from '../progress-view.ts';
import { ago, reasonOf, stateOf } from '../run-view.ts';
import { addSelection, selectMirrors } from '../selection.ts';

export function runsCommand(): Command {
  const command = newCommand(
    {
      name: 'runs',
      summary: 'list the last runs',
      description: 'Lists the last runs in the journal, newest first, with the counts of all their attempts.',
      examples: [
        ['retl runs', 'of every mirror'],
        ['retl runs vip-customers --limit 5', 'the last five of one mirror'],
        ['retl runs "vip-*"', 'of several, by a pattern'],
        ['retl runs --state parked --state blocked', 'those that wait for somebody'],
        ['retl runs --json', 'as a JSON document'],
      ],
    },
    runs,
  );
  return addSelection(command)
    .addOption(
      new Option('--state <state>', 'in these states only, with commas; may be given more than once')
        .choices(RUN_STATES)
        .argParser(stateArgument),
    )
    .option('--limit <number>', 'how many at most', limitArgument, 20);
}

/** Parses one `--state`, after those `before` it. */
function stateArgument(text: string, before: readonly RunState[] | undefined): readonly RunState[] {
  return [...(before ?? []), ...choicesIn(text, RUN_STATES)];
}

function statesIn({ state }: Invocation['options']): readonly RunState[] | null {
  return Array.isArray(state) ? RUN_STATES.filter((known) => state.includes(known)) : null;
}

/** Of several mirrors, the newest of all of them together. */
async function readSelected(invocation: Invocation, limit: number): Promise<readonly RunSummary[]> {
  const { project, args, options } = invocation;
  const states = statesIn(options);
  if (args.length === 0 && options.tag === undefined) return readRuns(project, null, limit, states);
  const known = (await readMirrors(project)).map(({ mirror }) => mirror);
  const selected = await selectMirrors(invocation, known);
  const found: RunSummary[] = [];
  for (const mirror of selected?.mirrors ?? [])
    found.push(...(await readRuns(project, mirror, limit, states)));
  return found.sort((a, b) => b.openedAt.getTime() - a.openedAt.getTime()).slice(0, limit);
}

async function runs(invocation: Invocation): Promise<ExitCode> {
  const { output, options } = invocation;
  const found = await readSelected(invocation, limitOf(options));
  const parked = await readParked(
    invocation.project,
    found.filter((one) => one.parked !== null).map((one) => one.mirror),
  );
  const askedOf = (one: RunSummary) => (one.parked === null ? null : (parked.get(one.mirror) ?? null));
  output.document({ runs: found.map((one) => ({ ...one, asks: askedOf(one) })) });
  if (found.length === 0) output.line(noneWords(options));
  else {
    const now = Date.now();
    const rows = found.map((run) => [
      run.runId,
      run.mirror,
      stateOf(run, askedOf(run)),
      ago(run.openedAt, now),
      whole(run.counts.added),
      whole(run.counts.changed),
      whole(run.counts.removed),
      whole(run.counts.unchanged),
      whole(run.counts.rejected),
      reasonOf(run, askedOf(run)),
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

function noneWords(options: Invocation['options']): string {
  const states = statesIn(options);
  return states === null
    ? 'No runs yet. `retl run <mirror>` starts one.'
    : `No run is ${states.join(' or ')}.`;
}
