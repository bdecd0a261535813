/** `retl log compact`: turns the older part of the log into a log snapshot, and drops what only served it. */

import { type Command, InvalidArgumentError } from 'commander';
import { parseDuration } from '../../config/quantities.ts';
import type { Begun, CompactStep } from '../../journal/compaction.ts';
import { type Invocation, newCommand } from '../command.ts';
import { confirm, YES_HELP } from '../confirm.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { type Journal, withJournal } from '../journal.ts';
import { BROKEN, LongWork } from '../log-view.ts';
import { counted } from '../problems-view.ts';
import { whole } from '../progress-view.ts';
import { verifyWith } from './log-verify.ts';

const DAY_MS = 86_400_000;

export function logCompactCommand(): Command {
  return newCommand(
    {
      name: 'compact',
      summary: 'turn the older part of the log into a log snapshot',
      description:
        'Verifies the log, and writes a snapshot of every mirror’s members as of a position: since when each is held, and what was ' +
        'accepted last, when and by which run. From then on the log begins after it, and rows that only told of older effects ' +
        'go. Entries stay. It works in short steps while mirrors run; where it was killed, the same command goes on. Nothing ' +
        'brings the older effects back. An index that needs them holds it back.',
      examples: [
        ['retl log compact --before 90d', 'everything accepted more than 90 days ago'],
        ['retl log compact --before 250000 --yes', 'everything before that position, in a script'],
        ['retl log compact --before 90d --receipts 30d', 'and the answers of runs closed 30 days ago'],
      ],
    },
    compact,
  )
    .requiredOption(
      '--before <position|age>',
      'the first position to keep, or an age such as 90d',
      beforeArgument,
    )
    .option(
      '--receipts <age>',
      'also take away providers’ answers, and attempts, of runs closed so long ago; 1d at least',
      receiptsArgument,
    )
    .option('--no-verify', 'do not verify the log first')
    .option('--yes', YES_HELP);
}

type Before = { readonly position: bigint } | { readonly ageMs: number };

/** `null`: it is neither. */
function beforeIn(text: string): Before | null {
  if (/^[0-9]{1,18}$/.test(text)) return BigInt(text) > 0n ? { position: BigInt(text) } : null;
  const ageMs = parseDuration(text);
  return ageMs === null ? null : { ageMs };
}

function beforeArgument(text: string): string {
  if (beforeIn(text) === null)
    throw new InvalidArgumentError('It must be a position from 1, or an age such as 24h or 90d.');
  return text;
}

function beforeOf(option: unknown): Before {
  const before = typeof option === 'string' ? beforeIn(option) : null;
  if (before === null) throw new Error('--before was not checked');
  return before;
}

function receiptsArgument(text: string): number {
  const ageMs = parseDuration(text);
  if (ageMs === null || ageMs < DAY_MS)
    throw new InvalidArgumentError('It must be an age such as 30d, of a day at least.');
  return ageMs;
}

async function compact(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  return withJournal(project, async (journal) => {
    const boundary = await boundaryOf(journal, beforeOf(options.before));
    if (options.verify !== false) await requireIntact(invocation, journal);
    await confirm(
      invocation,
      `Give up the single effects before position ${whole(Number(boundary + 1n))}`,
      'yes',
    );
    const built = await build(invocation, journal, boundary);
    const dropped = await sweep(journal);
    const pruned = typeof options.receipts === 'number' ? await prune(journal, options.receipts) : null;
    output.document({ ...built, dropped: dropped.dropped, waiting: dropped.waiting, receiptsOfRuns: pruned });
    output.line(builtWords(built));
    if (dropped.dropped > 0)
      output.line(
        `Dropped what ${counted(dropped.dropped, 'run or snapshot', 'runs and snapshots')} no longer need.`,
      );
    if (dropped.waiting > 0)
      output.line(
        `Rows of ${counted(dropped.waiting, 'run or snapshot', 'runs and snapshots')} stay for an hour for whoever reads them; ` +
          'the next `retl log compact` drops them.',
      );
    if (pruned !== null) output.line(`Answers and attempts of ${whole(pruned)} runs were taken away.`);
    return built.kind === 'held' ? EXIT.refused : EXIT.ok;
  });
}

/** The last position that is given up; 0: none. */
async function boundaryOf(journal: Journal, before: Before): Promise<bigint> {
  const { requireSchema } = await import('../../journal/migrate.ts');
  await requireSchema(journal);
  if ('position' in before) return before.position - 1n;
  const { positionBefore } = await import('../../journal/compaction.ts');
  return positionBefore(journal, before.ageMs);
}

/** A log that was tampered with must not become a snapshot that nobody can see it in. */
async function requireIntact({ output }: Invocation, journal: Journal): Promise<void> {
  const verdict = await verifyWith(output, journal, true);
  if (verdict.kind === 'broken')
    throw new Refusal(
      EXIT.failure,
      'log-broken',
      `The log is not what was written, at position ${verdict.position}: ${BROKEN[verdict.rule]}. Nothing was changed.`,
      'docs/log.md says what to do; --no-verify compacts it as it is.',
    );
}

type Built =
  | Exclude<Begun, { kind: 'begun' | 'building' }>
  | Extract<CompactStep, { kind: 'complete' | 'held' }>;

async function build({ output }: Invocation, journal: Journal, boundary: bigint): Promise<Built> {
  const { beginCompaction, compactStep, STEP_ROWS } = await import('../../journal/compaction.ts');
  const { logPosition } = await import('../../domain/ids.ts');
  const begun = await beginCompaction(journal, logPosition(boundary));
  if (begun.kind === 'nothing' || begun.kind === 'held') return begun;
  if (begun.kind === 'building')
    output.note(`Snapshot ${begun.snapshot}, up to ${begun.boundary}, had been begun: it is finished first.`);
  const work = new LongWork(output);
  try {
    for (;;) {
      const step = await compactStep(journal, STEP_ROWS);
      if (step.kind === 'building') work.at('compacting position', step.applied, step.boundary);
      // Somebody else has completed it.
      else if (step.kind === 'idle') return { kind: 'nothing', earliest: logPosition(begun.boundary + 1n) };
      else return step;
    }
  } finally {
    work.end();
  }
}

function builtWords(built: Built): string {
  switch (built.kind) {
    case 'nothing':
      return `Nothing to compact: the log begins at ${whole(Number(built.earliest))} already.`;
    case 'held':
      return `Held back by index ${built.by}, which needs what follows position ${whole(Number(built.position))}.`;
    default:
      return (
        `Snapshot ${built.snapshot}: ${whole(Number(built.members))} members as of position ${whole(Number(built.boundary))}, ` +
        `${built.digest}. The log begins at ${whole(Number(built.boundary) + 1)} now.`
      );
  }
}

async function sweep(journal: Journal) {
  const { GRACE_MS, STEP_ROWS, sweepStep } = await import('../../journal/compaction.ts');
  for (let dropped = 0; ; ) {
    const step = await sweepStep(journal, STEP_ROWS, GRACE_MS);
    if (step.kind === 'idle') return { dropped, waiting: step.waiting };
    if (step.kind === 'dropped') dropped += 1;
  }
}

async function prune(journal: Journal, ageMs: number): Promise<number> {
  const { pruneClosed, STEP_ROWS } = await import('../../journal/compaction.ts');
  for (let runs = 0; ; ) {
    const step = await pruneClosed(journal, ageMs, STEP_ROWS);
    runs += step.runs;
    if (!step.more) return runs;
  }
}
