/**
 * What an error of PostgreSQL, of the driver or of the network proves about a request (design.md section 6). Decided
 * here once, by SQLSTATE; the server's words are never read, for they are translated.
 */

import pg from 'pg';

export type Verdict =
  /** The data of one or several rows is refused: which ones is found out row by row. */
  | { readonly kind: 'data'; readonly code: string; readonly reason: string }
  /** Rights, names or settings must change first. */
  | { readonly kind: 'misconfigured'; readonly code: string; readonly reason: string }
  /** The request itself is sound: trying again makes sense. */
  | { readonly kind: 'transient'; readonly code: string; readonly tooLarge: boolean };

/** Classes that speak of values, constraints and triggers; so does every code that a trigger made up. */
const NOT_DATA = /^(08|0A|0L|0P|25|28|3D|3F|40|42|53|54|55|57|58|72|F0|HV|XX)/;
/** Syntax, names, rights, unknown database, schema or role; a feature that the table does not support. */
const MISCONFIGURED = /^(0A|0L|0P|28|3D|3F|42|F0|HV)/;
/** `statement_timeout` and the server's fixed limits: fewer rows may pass. */
const TOO_LARGE = /^(57014|54)/;

/** An error that ended a request before its COMMIT was sent: nothing was applied, whatever it is. */
export function verdictBeforeCommit(error: unknown): Verdict {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return transportVerdict(error);
  const code = `sqlstate-${error.code}`;
  if (MISCONFIGURED.test(error.code)) return { kind: 'misconfigured', code, reason: wordsOf(error) };
  if (NOT_DATA.test(error.code)) {
    return { kind: 'transient', code, tooLarge: TOO_LARGE.test(error.code) };
  }
  return { kind: 'data', code, reason: wordsOf(error) };
}

/** The server's message and detail, which hold values: for the journal only. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof pg.DatabaseError)) return '';
  return [error.message, error.detail].filter((text) => text !== undefined && text !== '').join(' ');
}

/** SQLSTATE of a server's error; `null` for errors of the driver or the network. */
export function sqlstateOf(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null;
}

/**
 * Whether what the work of a transaction threw is a fault of this code, which another try would not mend: the server's, the driver's and
 * the network's errors are DatabaseErrors, have a code, or are plain.
 */
export function isDefect(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  if (error instanceof pg.DatabaseError || 'code' in error || error instanceof AggregateError) return false;
  return Object.getPrototypeOf(error) !== Error.prototype;
}

/** Errors that COMMIT itself reports and that mean: rolled back. 40003 says of itself that nobody knows. */
const ROLLED_BACK = /^(09|2[0-9A-F]|4(?!0003)|P0)/;

/**
 * Whether an error in answer to COMMIT proves that nothing was applied: a deferred constraint or a serialization
 * failure. A lost connection, a shutdown, a timeout or a pooler's own error proves nothing.
 */
export function provesRollback(error: unknown): boolean {
  const code = sqlstateOf(error);
  return code !== null && ROLLED_BACK.test(code);
}

const TRANSPORT_CODES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection-refused',
  ECONNRESET: 'connection-reset',
  EPIPE: 'connection-reset',
  ETIMEDOUT: 'connection-timeout',
  EHOSTUNREACH: 'host-unreachable',
  ENETUNREACH: 'host-unreachable',
  ENOTFOUND: 'host-unknown',
  EAI_AGAIN: 'host-unknown',
  ENOENT: 'connection-refused', // no such Unix socket
};

/** Errors of TLS that only configuration mends: untrusted, expired or wrongly named certificates. */
const TLS_FAULT =
  /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|ERR_OSSL_)/;

function transportVerdict(error: unknown): Verdict {
  const code = codeOf(error);
  if (TLS_FAULT.test(code)) {
    return { kind: 'misconfigured', code: 'tls-failed', reason: `TLS: ${code}` };
  }
  if (error instanceof Error && error.message === 'The server does not support SSL connections') {
    const reason = 'The server offers no TLS; set tls: false only where the network is trusted.';
    return { kind: 'misconfigured', code: 'tls-not-offered', reason };
  }
  return { kind: 'transient', code: TRANSPORT_CODES[code] ?? 'connection-lost', tooLarge: false };
}

/** Node's code of an error; of the first cause where several addresses were tried or the pool wrapped it. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return codeOf(inner);
}
