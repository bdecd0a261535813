/** `retl status [mirror]`: what each mirror holds, and how its last run stands. */

import type { Command } from 'commander';
import { nearest } from '../../config/nearest.ts';
import { RetlError } from '../../domain/errors.ts';
import type { Progress } from '../../domain/messages.ts';
import type { MirrorSummary } from '../../journal/inspect.ts';
import type { BatchView } from '../../journal/resolve.ts';
import { batchLine } from '../batch-view.ts';
import { type Invocation, mirrorArgument, mirrorOf, newCommand } from '../command.ts';
import { countsWords } from '../ending-view.ts';
import type { Project } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { readMirrors, readUnresolved, workflowOf } from '../journal.ts';
import { requireKnown } from '../known-mirrors.ts';
import type { Output } from '../output.ts';
import { phaseWords, waitingWords, whole } from '../progress-view.ts';
import { ago, reasonOf, stateOf, stateStyle } from '../run-view.ts';
import { withTemporal } from '../temporal.ts';

export function statusCommand(): Command {
  return newCommand(
    {
      name: 'status',
      summary: 'show what each mirror holds and how its last run stands',
      description:
        'Shows, from the journal, how many members each destination is known to hold and how the last run stands. ' +
        'Needs neither Temporal nor a worker; where they answer, one mirror is shown with what its run is doing now.',
      examples: [
        ['retl status', 'every mirror'],
        ['retl status vip-customers', 'one mirror, in more words'],
        ['retl status --json', 'as a JSON document'],
      ],
    },
    status,
  ).argument('[mirror]', 'name of one mirror', mirrorArgument);
}

async function status(invocation: Invocation): Promise<ExitCode> {
  const { output, project } = invocation;
  const mirror = mirrorOf(invocation);
  const all = await readMirrors(project);
  if (mirror !== null) return showOne(output, project, all, mirror);
  output.document({ mirrors: all });
  if (all.length === 0) output.line('No mirror has run yet. `retl run <mirror>` starts one.');
  else {
    const now = Date.now();
    const rows = all.map((summary) => {
      const run = summary.lastRun;
      const last =
        run === null ? ['never run', '', ''] : [stateOf(run), ago(run.openedAt, now), reasonOf(run)];
      return [summary.mirror, whole(summary.held), ...last];
    });
    output.table([['MIRROR', 'HELD', 'LAST RUN', 'STARTED', 'REASON'], ...rows]);
  }
  return EXIT.ok;
}

async function showOne(
  output: Output,
  project: Project,
  all: readonly MirrorSummary[],
  mirror: string,
): Promise<ExitCode> {
  const summary = all.find((candidate) => candidate.mirror === mirror);
  if (summary === undefined) {
    await requireKnown(project, mirror);
    const names = all.map((candidate) => candidate.mirror);
    const meant = nearest(mirror, names);
    if (meant !== null && meant !== mirror)
      throw new RetlError('config.unknown-mirror', { mirror, known: names });
    output.document({ mirror, held: 0, lastRun: null });
    output.line(`${mirror}: never run`);
    return EXIT.ok;
  }
  const now = await liveProgress(project, summary);
  const run = summary.lastRun;
  const unresolved =
    run === null || run.unresolvedBatches === 0 ? [] : await readUnresolved(project, run.runId);
  output.document({ ...summary, now, unresolved });
  output.line(
    `${output.style('bold', mirror)}  ${summary.strategy}, baseline ${summary.baseline ?? 'not yet established'}`,
  );
  output.line(`  holds     ${whole(summary.held)} members`);
  if (run === null) output.line('  last run  none');
  else {
    const reason = reasonOf(run);
    output.line(
      `  last run  ${output.style(stateStyle(run), stateOf(run))}${reason === '' ? '' : `: ${reason}`}`,
    );
    output.line(`            run ${run.runId}, started ${ago(run.openedAt, Date.now())}, ${run.holder}`);
    output.line(`            ${countsWords(run.counts)}`);
    if (now !== null) output.line(`  now       ${nowWords(now)}`);
    showUnresolved(output, mirror, unresolved);
  }
  return EXIT.ok;
}

/** Requests that are on their way are listed too; only an unknown one waits for a person. */
function showUnresolved(output: Output, mirror: string, unresolved: readonly BatchView[]): void {
  const now = Date.now();
  for (const [index, batch] of unresolved.entries())
    output.line(`  ${index === 0 ? 'batches ' : '        '}  ${batchLine(batch, now)}`);
  if (!unresolved.some((batch) => batch.state === 'unknown')) return;
  output.line('  Look at the destination, then say what became of each unknown one:');
  output.line(`    retl resolve ${mirror} <batch> --accepted | --not-applied --because "how you know"`);
}

const ANSWER_WITHIN_MS = 2_000;

/** `null` where nothing runs, or nobody answers: the journal has said what is certain. */
async function liveProgress(project: Project, { lastRun }: MirrorSummary): Promise<Progress | null> {
  if (lastRun === null || lastRun.state !== 'open' || lastRun.released !== null) return null;
  try {
    const { readProgress } = await import('../../client/watch.ts');
    return await withTemporal(project, async (temporal) => {
      const workflowId = workflowOf(lastRun, temporal.namespace);
      return workflowId === null ? null : readProgress(temporal, workflowId, ANSWER_WITHIN_MS);
    });
  } catch {
    return null;
  }
}

function nowWords(progress: Progress): string {
  return progress.waiting === null ? phaseWords(progress) : waitingWords(progress.waiting, Date.now());
}
