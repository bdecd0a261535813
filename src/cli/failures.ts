/**
 * Shows what went wrong: code, meaning, details and remedy of a known error; of any other only its type, because nothing
 * in it is known to be free of values and secrets.
 */

import { CommanderError } from 'commander';
import type { Problem } from '../config/problem.ts';
import { ERROR_CODES, RetlError } from '../domain/errors.ts';
import { EXIT, type ExitCode, exitOfError } from './exit-codes.ts';
import type { Output } from './output.ts';
import { showProblems } from './problems-view.ts';

/** The configuration has errors; they are listed. */
export class InvalidProject extends Error {
  override readonly name = 'InvalidProject';
  constructor(readonly problems: readonly Problem[]) {
    super('the configuration has errors');
  }
}

/** A command that cannot go on for a reason of its own, in words for the user. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  constructor(
    readonly exit: ExitCode,
    /** Stable, for `--json`. */
    readonly code: string,
    message: string,
    readonly remedy: string,
  ) {
    super(message);
  }
}

/** Shows the error and returns the exit code. */
export function showFailure(output: Output, error: unknown): ExitCode {
  if (error instanceof CommanderError) return commanderExit(output, error);
  if (error instanceof InvalidProject) {
    output.document({
      error: { code: 'config.invalid', ...words('config.invalid'), problems: error.problems },
    });
    showProblems(output, error.problems);
    return EXIT.usage;
  }
  if (error instanceof RetlError) return showRetlError(output, error);
  if (isUnavailable(error)) return showRetlError(output, new RetlError('journal.unavailable'));
  if (error instanceof Refusal) {
    const { code, message, remedy } = error;
    output.document({ error: { code, meaning: message, remedy } });
    output.note(`${output.style('red', 'error')}: ${message}`);
    output.note(`  ${remedy}`);
    return error.exit;
  }
  return showUnexpected(output, error);
}

/** The journal's own error, which this zone may not load: its database is away, busy or restarting. */
export function isUnavailable(error: unknown): boolean {
  return (
    error instanceof Error && error.name === 'JournalError' && 'kind' in error && error.kind === 'unavailable'
  );
}

function words(code: keyof typeof ERROR_CODES) {
  const { meaning, remedy } = ERROR_CODES[code];
  return { meaning, remedy };
}

function showRetlError(output: Output, error: RetlError): ExitCode {
  const { meaning, remedy } = words(error.code);
  output.document({ error: { code: error.code, meaning, remedy, details: error.details } });
  output.note(`${output.style('red', 'error')} ${output.style('bold', error.code)}: ${meaning}`);
  for (const [name, value] of Object.entries(error.details)) {
    const lines = Array.isArray(value) ? value.map((item) => `\n    ${item}`).join('') : ` ${String(value)}`;
    output.note(`  ${output.style('dim', `${name}:`)}${lines}`);
  }
  output.note(`  ${remedy}`);
  debugHint(output, error);
  return exitOfError(error.code);
}

function showUnexpected(output: Output, error: unknown): ExitCode {
  const type = error instanceof Error ? error.name : typeof error;
  const kind =
    error instanceof Error && 'kind' in error && typeof error.kind === 'string' ? error.kind : null;
  const system =
    error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
  const label = [type, kind, system].filter((part) => part !== null).join(' ');
  const remedy = 'Run the command again with --debug to see where it comes from.';
  output.document({ error: { code: 'unexpected', meaning: `An unexpected error: ${label}`, remedy } });
  output.note(`${output.style('red', 'error')}: something unexpected went wrong (${label}).`);
  output.note(`  ${remedy}`);
  debugHint(output, error);
  return EXIT.failure;
}

function debugHint(output: Output, error: unknown): void {
  if (output.options.debug && error instanceof Error) output.note(error.stack ?? error.name);
}

/** Commander has written its own words already, but for `--json`. */
function commanderExit(output: Output, error: CommanderError): ExitCode {
  if (error.exitCode === 0) return EXIT.ok;
  const meaning = error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  output.document({ error: { code: 'usage', meaning, remedy: '`retl --help` lists commands and options.' } });
  return EXIT.usage;
}
