/**
 * What a run that stands still needs, in the same words wherever it is told: `retl status`, a refusal because it is under way,
 * Temporal's UI. Codes, ids and commands only.
 */

import type { BatchId } from './ids.ts';
import type { Waiting } from './messages.ts';
import type { OpenState } from './run.ts';

/** What an open run is doing, as the journal has it. */
export interface Doing {
  readonly state: OpenState;
  /** Value-free; `null` where nothing is wrong. */
  readonly code: string | null;
  /** The batch concerned; `null`: none is. */
  readonly batch: BatchId | null;
  /** Since when it has been so; `null`: not known, or it runs. */
  readonly since: Date | null;
}

/** How a run stands still: as the run itself shows it, or as the journal has it. */
export interface Standstill {
  readonly kind: Waiting['kind'] | 'waiting';
  readonly code: string;
  /** By id; `null`: no batch is concerned. */
  readonly batch: string | null;
}

/** How the run stands still; `null`: it does not, or nobody has it. */
export function standstillOf({ state, code, batch }: Doing): Standstill | null {
  if (state === 'running' || state === 'cancelled' || state === 'failed') return null;
  return { kind: state, code: code ?? state, batch };
}

/** Why a run is blocked that was to look again by itself, and has not: it is paused, or no worker is there. */
export const NOBODY_LOOKS = 'nobody-looks';

/** `null`: nothing, it goes on by itself. */
export function neededWords(mirror: string, { kind, code, batch }: Standstill): string | null {
  switch (kind) {
    case 'parked':
      return `an answer: \`retl approve ${mirror}\` or \`retl reject ${mirror}\``;
    case 'paused':
      return `\`retl resume ${mirror}\`, or \`retl cancel ${mirror}\``;
    case 'blocked':
      return blockedWords(mirror, code, batch);
    default:
      return null;
  }
}

function blockedWords(mirror: string, code: string, batch: string | null): string {
  if (code === NOBODY_LOOKS)
    return `a worker (\`retl worker\`); where one is there, \`retl resume ${mirror}\` ends a pause`;
  if (batch === null)
    return `credentials, rights or settings that are mended; then \`retl resume ${mirror}\` asks again`;
  const again = isOfJobs(code) ? 'poll' : 'resume';
  return (
    'a look at the destination, then ' +
    `\`retl resolve ${mirror} ${batch} --accepted\` or \`--not-applied\`, with \`--because "how you know"\`; ` +
    `\`retl ${again} ${mirror}\` asks once more`
  );
}

/** Whether it is jobs that nobody can tell anything of, or not in time. */
function isOfJobs(code: string): boolean {
  return code.startsWith('poll-') || code.startsWith('job-');
}
