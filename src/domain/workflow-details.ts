/** What Temporal's UI shows of a run beside what it does now: what it is, and what may be said to it. In Markdown. */

import { SIGNALS, UPDATES } from './messages.ts';

/** @param mirror checked to be a mirror's name: nothing in it is Markdown. */
export function workflowDetails(mirror: string): string {
  const listed = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');
  return [
    `One run of the mirror **${mirror}** by retl-mirror: it makes the destination hold exactly what the mirror’s query returns. How to read this page: \`docs/temporal-ui.md\` of retl-mirror.`,
    '',
    `Signals, without input: ${listed(SIGNALS)}. Updates, while the guard asks: ${listed(UPDATES)}, with the argument that the current details show.`,
  ].join('\n');
}

export const MAINTENANCE_DETAILS = [
  'The maintenance of this project’s journal by retl-mirror: what runs have left behind goes, as `docs/maintenance.md` says, and nothing that is needed.',
  '',
  'No signals. Cancelled, it stops between two steps; started again, it goes on.',
].join('\n');
