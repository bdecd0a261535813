/** The one table of exit codes: scripts rely on it, `retl --help` and docs/cli.md show it. */

import { assertNever } from '../domain/assert-never.ts';
import { ERROR_CODES, type ErrorCode } from '../domain/errors.ts';
import type { FailureType, Outcome } from '../domain/messages.ts';

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  refused: 3,
  guardHeld: 4,
  rejected: 5,
  blocked: 6,
  stopped: 7,
  changes: 10,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS: { readonly [Name in keyof typeof EXIT]: string } = {
  ok: 'done; for `run`: the run completed',
  failure: 'something failed, or could not be reached; trying again may help',
  usage: 'wrong arguments, or an error in configuration or data that must be mended first',
  refused:
    'refused: a run is under way, another mirror owns the target, nothing is running or of that name, an index is paused, a batch is decided, a schedule is not this project’s, or nobody has said where Temporal is and no worker is there',
  guardHeld:
    'held by the guard: the run is parked and waits for an answer, or its removals were rejected or not approved in time',
  rejected: 'the destination rejected members',
  blocked: 'blocked: the outcome of a request is unknown and cannot be verified',
  stopped: 'the run was cancelled or aborted',
  changes:
    '`plan --detailed-exitcode`: a run would change something, within its limits; `baseline verify`: the target holds something else',
  interrupted: 'interrupted: a run that was followed goes on; of all else it is said what it leaves',
};

/** Of several runs: what waits for a person goes before what must be mended, and that before what may pass by itself. */
const WORST_FIRST: readonly ExitCode[] = [
  EXIT.interrupted,
  EXIT.blocked,
  EXIT.guardHeld,
  EXIT.rejected,
  EXIT.usage,
  EXIT.refused,
  EXIT.failure,
  EXIT.stopped,
  EXIT.changes,
  EXIT.ok,
];

/** The exit code of a command that did several things. */
export function worstExit(exits: readonly ExitCode[]): ExitCode {
  return WORST_FIRST.find((exit) => exits.includes(exit)) ?? EXIT.ok;
}

/** The table as lines of text. */
export function exitCodeLines(): readonly string[] {
  const names = Object.keys(EXIT_MEANINGS) as readonly (keyof typeof EXIT)[];
  return names.map((name) => `${String(EXIT[name]).padStart(5)}  ${EXIT_MEANINGS[name]}`);
}

export function exitOfFailure(type: FailureType): ExitCode {
  switch (type) {
    case 'refused':
      return EXIT.refused;
    case 'guard-held':
      return EXIT.guardHeld;
    case 'rejected':
      return EXIT.rejected;
    case 'invalid':
      return EXIT.usage;
    case 'blocked':
      return EXIT.blocked;
    case 'unavailable':
      return EXIT.failure;
    default:
      return assertNever(type);
  }
}

export function exitOfOutcome(outcome: Outcome): ExitCode {
  return outcome === 'completed' ? EXIT.ok : EXIT.stopped;
}

export function exitOfError(code: ErrorCode): ExitCode {
  if (code.startsWith('run.')) return EXIT.refused;
  if (/^(config|data|metrics)\./.test(code)) return EXIT.usage;
  // What a run ends with as `invalid`, too: trying again would change nothing.
  const isFinal = /^(source|destination)\./.test(code) && ERROR_CODES[code].recourse === 'fix';
  return isFinal ? EXIT.usage : EXIT.failure;
}
