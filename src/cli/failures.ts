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

/** A command that was given something that it does not take. @param command as it is typed after `retl` */
export function misused(command: string, message: string): Refusal {
  return new Refusal(EXIT.usage, 'usage', message, `\`retl ${command} --help\` shows how it is used.`);
}

interface ErrorDocument {
  readonly code: string;
  readonly meaning: string;
  readonly remedy: string;
  readonly problems?: readonly Problem[];
  readonly details?: RetlError['details'];
}

/** An error as it is told: to programs as a document, to people in lines, to the shell as a code. */
export interface Failure {
  readonly exit: ExitCode;
  /** More fields where there is more to say. */
  readonly document: ErrorDocument;
  readonly write: (output: Output) => void;
}

/** Shows the error and returns the exit code. */
export function showFailure(output: Output, error: unknown): ExitCode {
  if (error instanceof CommanderError) return commanderExit(output, error);
  const failure = failureOf(error);
  output.document({ error: failure.document });
  failure.write(output);
  return failure.exit;
}

export function failureOf(error: unknown): Failure {
  if (error instanceof InvalidProject) return invalidProject(error);
  if (error instanceof RetlError) return knownError(error);
  const journal = journalFailure(error);
  if (journal !== null) return knownError(journal);
  return error instanceof Refusal ? refusal(error) : unexpected(error);
}

function invalidProject({ problems }: InvalidProject): Failure {
  return {
    exit: EXIT.usage,
    document: { code: 'config.invalid', ...words('config.invalid'), problems },
    write: (output) => showProblems(output, problems),
  };
}

function refusal({ exit, code, message, remedy }: Refusal): Failure {
  return {
    exit,
    document: { code, meaning: message, remedy },
    write(output) {
      output.note(`${output.style('red', 'error')}: ${message}`);
      output.note(`  ${remedy}`);
    },
  };
}

/** Of the journal's own error, which this zone may not load. */
function sqlStateOf(error: unknown): string | null {
  if (!(error instanceof Error) || error.name !== 'JournalError' || !('sqlState' in error)) return null;
  return typeof error.sqlState === 'string' ? error.sqlState : null;
}

/** The journal's database is away, busy or restarting. */
export function isUnavailable(error: unknown): boolean {
  return (
    sqlStateOf(error) !== null && error instanceof Error && 'kind' in error && error.kind === 'unavailable'
  );
}

/** The journal's URL is not known here, or leads nowhere. */
export function isOutOfReach(error: unknown): boolean {
  return isUnavailable(error) || (error instanceof RetlError && error.code === 'config.secret');
}

/** 42501: the role lacks a right. Of another process only the details tell. */
export function isDenied(error: unknown): boolean {
  const sqlState = error instanceof RetlError ? error.details.sqlstate : sqlStateOf(error);
  return sqlState === '42501';
}

/** No schema, no table, no function, no column, or no right to them: not migrated, or nothing was granted. */
const MISSING = /^(3F000|42P01|42883|42703|42501)$/;
/** No such database; who connects is not let in. */
const NOT_LET_IN = /^(3D000|28)/;

/** What the journal refuses whoever asks, in the words of the error table; `null` where it is anything else. */
function journalFailure(error: unknown): RetlError | null {
  const sqlstate = sqlStateOf(error);
  if (sqlstate === null) return null;
  const details = sqlstate === '' ? {} : { sqlstate };
  if (isUnavailable(error) || NOT_LET_IN.test(sqlstate)) return new RetlError('journal.unavailable', details);
  return MISSING.test(sqlstate) ? new RetlError('journal.missing', details) : null;
}

function words(code: keyof typeof ERROR_CODES) {
  const { meaning, remedy } = ERROR_CODES[code];
  return { meaning, remedy };
}

function knownError(error: RetlError): Failure {
  const { code, details } = error;
  const { meaning, remedy } = words(code);
  return {
    exit: exitOfError(code),
    document: { code, meaning, remedy, details },
    write(output) {
      output.note(`${output.style('red', 'error')} ${output.style('bold', code)}: ${meaning}`);
      for (const [name, value] of Object.entries(details)) {
        const text = Array.isArray(value)
          ? value.map((item) => `\n    ${item}`).join('')
          : ` ${String(value)}`;
        output.note(`  ${output.style('dim', `${name}:`)}${text}`);
      }
      output.note(`  ${remedy}`);
      debugHint(output, error);
    },
  };
}

function unexpected(error: unknown): Failure {
  const type = error instanceof Error ? error.name : typeof error;
  const kind =
    error instanceof Error && 'kind' in error && typeof error.kind === 'string' ? error.kind : null;
  const system =
    error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
  const label = [type, kind, system].filter((part) => part !== null).join(' ');
  const remedy = 'Run the command again with --debug to see where it comes from.';
  return {
    exit: EXIT.failure,
    document: { code: 'unexpected', meaning: `An unexpected error: ${label}`, remedy },
    write(output) {
      output.note(`${output.style('red', 'error')}: something unexpected went wrong (${label}).`);
      output.note(`  ${remedy}`);
      debugHint(output, error);
    },
  };
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
