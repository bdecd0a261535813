/**
 * What an error of the SDK, of the store or of the network proves about one request (design.md section 6). Decided here
 * once, by status and code; the store's words are for the journal only, as they may name keys.
 */

import type { StepOutcome } from '../port.ts';

export type Failure = Extract<StepOutcome, { kind: 'not-applied' | 'misconfigured' | 'unknown' }>;

export type Refusal =
  | Failure
  /** A condition of the request does not hold: nothing was written. */
  | { readonly kind: 'precondition' }
  /** There is no such object. */
  | { readonly kind: 'absent' };

/** Nothing has left this machine, or the store says itself that it did nothing. */
const NOT_SENT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection-refused',
  ENOTFOUND: 'host-unknown',
  EAI_AGAIN: 'host-unknown',
  EHOSTUNREACH: 'host-unreachable',
  ENETUNREACH: 'host-unreachable',
};

const TLS_FAULT =
  /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|ERR_OSSL_|EPROTO)/;

/** Codes by which the store says that it did nothing, and that another try makes sense. */
const TRY_AGAIN: readonly string[] = [
  'SlowDown',
  'ServiceUnavailable',
  'RequestTimeout',
  'BadDigest',
  'IncompleteBody',
  'XAmzContentSHA256Mismatch',
  'ConditionalRequestConflict',
  'OperationAborted',
];

const NO_CREDENTIALS: readonly string[] = ['CredentialsProviderError', 'TokenProviderError'];

export function refusalOf(error: unknown): Refusal {
  const { status, name, code, message } = read(error);
  if (status === null) return withoutAnswer(name, code);
  if (status === 412 || (status === 404 && name === 'NoSuchKey')) {
    return { kind: status === 412 ? 'precondition' : 'absent' };
  }
  // A HEAD has no body to tell a missing bucket by; nothing here asks by HEAD.
  if (TRY_AGAIN.includes(name) || status === 429) return notApplied(codeOf(name, status), retryAfter(error));
  if (status === 409 || status >= 500) {
    return status === 501 ? misconfigured(name, status, message) : unknown(codeOf(name, status));
  }
  // No member is at fault in a request whose body is bytes to the store: what else it refuses, settings must mend.
  return misconfigured(name, status, message);
}

function withoutAnswer(name: string, code: string): Failure {
  if (NO_CREDENTIALS.includes(name)) {
    const reason = 'Neither the connection nor the SDK’s own chain has credentials.';
    return { kind: 'misconfigured', code: 'credentials-missing', reason };
  }
  if (TLS_FAULT.test(code)) return { kind: 'misconfigured', code: 'tls-failed', reason: `TLS: ${code}` };
  const notSent = NOT_SENT[code];
  return notSent === undefined ? unknown('answer-lost') : notApplied(notSent, null);
}

function notApplied(code: string, retryAfterMs: number | null): Failure {
  return { kind: 'not-applied', code, retryAfterMs, tooLarge: false };
}

function unknown(code: string): Failure {
  return { kind: 'unknown', code };
}

function misconfigured(name: string, status: number, reason: string): Failure {
  return { kind: 'misconfigured', code: codeOf(name, status), reason };
}

/** `s3-access-denied` for AccessDenied; a store that gives no code of its own leaves the status. */
function codeOf(name: string, status: number): string {
  if (!/^[A-Z][A-Za-z0-9.]{2,60}$/.test(name) || name === 'Error') return `http-${status}`;
  return `s3-${name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replaceAll('.', '-')
    .toLowerCase()}`;
}

interface SdkError {
  readonly status: number | null;
  readonly name: string;
  readonly code: string;
  readonly message: string;
}

function read(error: unknown): SdkError {
  if (!(error instanceof Error)) return { status: null, name: '', code: '', message: '' };
  const status = field(field(error, '$metadata'), 'httpStatusCode');
  return {
    status: typeof status === 'number' ? status : null,
    name: error.name,
    code: nodeCode(error),
    message: error.message,
  };
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** Node's code of an error; of the first cause where several addresses were tried or the SDK wrapped it. */
function nodeCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const code = field(error, 'code');
  if (typeof code === 'string') return code;
  return nodeCode(error instanceof AggregateError ? error.errors[0] : error.cause);
}

/** Seconds of a Retry-After header as ms; `null` where there is none. */
function retryAfter(error: unknown): number | null {
  const seconds = field(field(field(error, '$response'), 'headers'), 'retry-after');
  return typeof seconds === 'string' && /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1000 : null;
}
