/**
 * PostgreSQL's and Node's errors, turned into the project's codes. Only SQLSTATEs, system error names, and places in the
 * query go along: the server's own words may hold values.
 */

import pg from 'pg';
import { type ErrorCode, type ErrorDetails, RetlError } from '../../domain/errors.ts';

/** A failure before the session is there. */
export function connectFailure(error: unknown): RetlError {
  if (error instanceof RetlError) return error;
  if (error instanceof pg.DatabaseError) return refusedConnection(error.code ?? '');
  const name = systemCode(error);
  if (name !== null && isTlsError(name)) return new RetlError('source.tls', { cause: name });
  const words = error instanceof Error ? error.message : '';
  if (words === 'The server does not support SSL connections')
    return new RetlError('source.tls', { cause: 'server-without-tls' });
  if (words.startsWith('SASL')) return new RetlError('source.auth', { cause: 'password' });
  if (words === 'timeout expired') return new RetlError('source.connect', { cause: 'timeout' });
  return new RetlError('source.connect', name === null ? {} : { cause: name });
}

/** 28: authorisation; 3D000: no such database; 42501: no right to connect. Everything else may pass. */
function refusedConnection(sqlstate: string): RetlError {
  const refused = sqlstate.startsWith('28') || sqlstate === '3D000' || sqlstate === '42501';
  return new RetlError(refused ? 'source.auth' : 'source.connect', { sqlstate });
}

/** A failure within the session. `query` is the text that positions in the error refer to. */
export function queryFailure(error: unknown, query: string): RetlError {
  if (error instanceof RetlError) return error;
  if (!(error instanceof pg.DatabaseError)) return new RetlError('source.lost');
  const sqlstate = error.code ?? '';
  const code = codeOf(sqlstate);
  if (code !== 'source.query') return new RetlError(code, { sqlstate });
  return new RetlError(code, { sqlstate, ...reasonOf(error), ...placeIn(query, error.position) });
}

/**
 * Classes that speak of the connection, the server or of other sessions: 08 connection, 25P03 and 25P04 time limits of
 * the transaction, 40 rollback (a standby's recovery conflict is 40001), 53 resources, 57P shutdown, 58 system, XX
 * internal. What is left speaks of the query.
 */
const PASSING = /^(08|25P0[34]|40|53|57P|58|XX)/;

function codeOf(sqlstate: string): ErrorCode {
  if (sqlstate === '57014' || sqlstate === '55P03') return 'source.timeout';
  return PASSING.test(sqlstate) ? 'source.lost' : 'source.query';
}

function reasonOf(error: pg.DatabaseError): ErrorDetails {
  if (error.code === '25006') return { reason: 'writes' };
  // PostgreSQL gives this refusal no SQLSTATE of its own; the routine's name does not depend on the server's language.
  if (error.code === '42601' && error.routine === 'exec_parse_message')
    return { reason: 'several-statements' };
  return {};
}

/** Line and column, from 1, of a position that counts characters from 1. */
function placeIn(query: string, position: string | undefined): ErrorDetails {
  const at = Number(position);
  if (!Number.isInteger(at) || at < 1) return {};
  const lines = [...query]
    .slice(0, at - 1)
    .join('')
    .split('\n');
  return { line: lines.length, column: [...(lines.at(-1) ?? '')].length + 1 };
}

function systemCode(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if (error instanceof AggregateError) return systemCode(error.errors[0]); // every address of the host was tried
  const code: unknown = Reflect.get(error, 'code');
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(code) ? code : null;
}

/** Names that OpenSSL's verification and Node's TLS give; system errors of the socket all begin with E. */
function isTlsError(name: string): boolean {
  if (name.startsWith('ERR_TLS') || name.startsWith('ERR_SSL') || name.startsWith('ERR_OSSL')) return true;
  return !name.startsWith('E') && /CERT|CRL|ISSUER|SIGNATURE|HOSTNAME_MISMATCH|CHAIN|CA$/.test(name);
}
