/** What came of a play, for people. */

import type { Result } from './finale.ts';

export interface Totals {
  readonly seed: number;
  readonly minutes: number;
  readonly looks: number;
  readonly effects: number;
  readonly tally: ReadonlyMap<string, number>;
  /** How executions ended, and how often. */
  readonly endings: ReadonlyMap<string, number>;
}

export function tableOf(results: readonly Result[], totals: Totals): string {
  const head = ['mirror', 'kind', 'source versions', 'runs', 'completed', 'lies', 'differences'];
  const rows = results.map(({ lane, runs, completed, differences }) => [
    lane.name,
    lane.kind,
    String(lane.story.versions.length),
    String(runs),
    String(completed),
    String(lane.lies()),
    String(differences.length),
  ]);
  const widths = head.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    cells
      .map((text, at) => text.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return [
    `${totals.minutes} minutes of chaos, seed ${totals.seed} (RETL_CHAOS_SEED=${totals.seed} chooses the same again)`,
    '',
    line(head),
    ...rows.map(line),
    '',
    `looked at the destinations ${totals.looks} times, at ${totals.effects} effects`,
    ...listed('what happened', totals.tally),
    ...listed('how executions ended', totals.endings),
  ].join('\n');
}

function listed(title: string, counts: ReadonlyMap<string, number>): readonly string[] {
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  return ['', `${title}:`, ...sorted.map(([name, count]) => `  ${String(count).padStart(6)}  ${name}`)];
}
