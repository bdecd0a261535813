/** `retl status [mirror]…`: what each mirror holds, and how its last run stands. */

import type { Command } from 'commander';
import type { ParkedRun } from '../../journal/approvals.ts';
import type { MirrorSummary } from '../../journal/inspect.ts';
import { type Invocation, newCommand } from '../command.ts';
import type { Project } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { readMirrors, readParked, readUnresolved } from '../journal.ts';
import { liveState } from '../live-state.ts';
import type { Output } from '../output.ts';
import { whole } from '../progress-view.ts';
import { ago, reasonOf, stateOf, stateStyle } from '../run-view.ts';
import { addSelection, selectMirrors } from '../selection.ts';
import { detailLines } from '../status-view.ts';

export function statusCommand(): Command {
  const command = newCommand(
    {
      name: 'status',
      summary: 'show what each mirror holds and how its last run stands',
      description:
        'Shows, from the journal, how many members each destination is known to hold and how the last run stands. ' +
        'Needs neither Temporal nor a worker; where they answer, one mirror is shown with what its run is doing now.',
      examples: [
        ['retl status', 'every mirror'],
        ['retl status vip-customers', 'one mirror, in more words'],
        ['retl status "vip-*"', 'several, by a pattern'],
        ['retl status --json', 'as a JSON document'],
      ],
    },
    status,
  );
  return addSelection(command);
}

async function status(invocation: Invocation): Promise<ExitCode> {
  const { output } = invocation;
  const all = await readMirrors(invocation.project);
  const selected = await selectMirrors(
    invocation,
    all.map(({ mirror }) => mirror),
  );
  if (selected === null) {
    const shown = await withQuestions(invocation.project, all);
    output.document({ mirrors: shown });
    if (shown.length === 0) output.line('No mirror has run yet. `retl run <mirror>` starts one.');
    else showTable(output, shown);
    return EXIT.ok;
  }
  const chosen = await withQuestions(
    invocation.project,
    selected.mirrors.map((mirror) => all.find((one) => one.mirror === mirror) ?? never(mirror)),
  );
  const [only] = chosen;
  if (chosen.length === 1 && only !== undefined) return showOne(invocation, only);
  output.document({ mirrors: chosen });
  showTable(output, chosen);
  return EXIT.ok;
}

/** A mirror, and what the guard asks of its last run. */
interface Summary extends MirrorSummary {
  readonly asks: ParkedRun | null;
}

async function withQuestions(
  project: Project,
  summaries: readonly MirrorSummary[],
): Promise<readonly Summary[]> {
  const parked = summaries.filter(({ lastRun }) => lastRun !== null && lastRun.parked !== null);
  const asked = await readParked(
    project,
    parked.map(({ mirror }) => mirror),
  );
  return summaries.map((summary) => ({ ...summary, asks: asked.get(summary.mirror) ?? null }));
}

/** Configured, and not in the journal yet. */
function never(mirror: string): MirrorSummary {
  return {
    mirror,
    strategy: 'snapshot-diff',
    held: 0,
    baseline: null,
    exceptions: 0,
    formerTargets: { targets: 0, members: 0 },
    lastRun: null,
  };
}

function showTable(output: Output, summaries: readonly Summary[]): void {
  const now = Date.now();
  const rows = summaries.map(({ mirror, held, lastRun, asks }) => {
    const last =
      lastRun === null
        ? ['never run', '', '']
        : [stateOf(lastRun, asks), ago(lastRun.openedAt, now), reasonOf(lastRun, asks)];
    return [mirror, whole(held), ...last];
  });
  output.table([['MIRROR', 'HELD', 'LAST RUN', 'STARTED', 'REASON'], ...rows]);
}

async function showOne({ output, project }: Invocation, summary: Summary): Promise<ExitCode> {
  const run = summary.lastRun;
  const live = await liveState(project, run);
  const unresolved =
    run === null || run.unresolvedBatches === 0 ? [] : await readUnresolved(project, run.runId);
  const now = live.kind === 'answers' ? live.progress : null;
  output.document({ mirrors: [{ ...summary, now, unresolved }] });
  if (run === null) output.line(`${output.style('bold', summary.mirror)}: never run`);
  else {
    const style = (text: string) => output.style(stateStyle(run), text);
    output.line(
      `${output.style('bold', summary.mirror)}  ${summary.strategy}, baseline ${summary.baseline ?? 'not yet established'}`,
    );
    for (const line of detailLines({
      summary,
      run,
      asks: summary.asks,
      live,
      unresolved,
      style,
      now: Date.now(),
    }))
      output.line(`  ${line}`);
  }
  return EXIT.ok;
}
