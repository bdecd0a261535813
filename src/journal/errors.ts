/**
 * What can go wrong between an activity and the journal, in four kinds that callers act on. The messages are this
 * project's own: a driver's text, which may hold values, goes no further than here.
 */

export type JournalErrorKind =
  | 'fenced' // a newer attempt has begun, the run is closed, or somebody else holds it: stop, write nothing
  | 'rule' // a numbered rule forbids it: a bug of the caller, or a state that must be looked at
  | 'unavailable' // the database is away, busy or restarting: try again
  | 'broken'; // anything else: a bug, or a journal of another version

export class JournalError extends Error {
  override readonly name = 'JournalError';
  constructor(
    readonly kind: JournalErrorKind,
    /** SQLSTATE or the driver's error code; never a message of the server. */
    readonly sqlState: string,
    message: string,
  ) {
    super(message);
  }
}

/** Lost connections, resource limits, shutdown, lock and statement time-outs, serialisation failures. */
const UNAVAILABLE = /^(08...|53...|57P0[1-4]|57014|55P03|40001|40P01|25P03|25006)$/;
const NETWORK = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENET)/;
const BY_STATE: Readonly<Record<string, JournalErrorKind>> = {
  RM001: 'fenced',
  RM002: 'fenced',
  RM003: 'rule',
  RM004: 'rule',
  RM006: 'rule',
};

/** Turns whatever the driver threw into a {@link JournalError}; one is passed through. */
export function journalError(error: unknown): JournalError {
  if (error instanceof JournalError) return error;
  const code = errorCode(error);
  const own = BY_STATE[code];
  // The messages of the journal's own functions hold rules, counts and states only (migrations/).
  if (own !== undefined) return new JournalError(own, code, error instanceof Error ? error.message : code);
  if (UNAVAILABLE.test(code) || NETWORK.test(code) || code === '') {
    return new JournalError(
      'unavailable',
      code,
      `the journal is not available${code === '' ? '' : ` (${code})`}`,
    );
  }
  return new JournalError('broken', code, `the journal refused a statement (${code})`);
}

function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
