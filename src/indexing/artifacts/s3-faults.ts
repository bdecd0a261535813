/** What an error of the SDK, of the store or of the network means for the store of artifacts. The store's words stay out. */

import { RetlError } from '../../domain/errors.ts';
import type { ArtifactReference } from '../../domain/ids.ts';

export type S3Fault =
  /** There is an object already, and the condition was that there is none. */
  | { readonly kind: 'exists' }
  /** Another write of the same object was under way. */
  | { readonly kind: 'conflict'; readonly code: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unavailable' | 'misconfigured'; readonly code: string };

const BUSY: readonly string[] = [
  'SlowDown',
  'ServiceUnavailable',
  'RequestTimeout',
  'BadDigest',
  'IncompleteBody',
];
const NO_CREDENTIALS: readonly string[] = ['CredentialsProviderError', 'TokenProviderError'];

const TLS_FAULT = /^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO)/;

export function s3Fault(error: unknown): S3Fault {
  const { status, name, system } = read(error);
  if (status === null) return withoutAnswer(name, system);
  if (status === 412) return { kind: 'exists' };
  if (status === 404 && name === 'NoSuchKey') return { kind: 'missing' };
  const code = word(name, `http-${status}`);
  if (status === 409) return { kind: 'conflict', code };
  const transient = status === 429 || (status >= 500 && status !== 501) || BUSY.includes(name);
  return { kind: transient ? 'unavailable' : 'misconfigured', code };
}

function withoutAnswer(name: string, system: string): S3Fault {
  if (NO_CREDENTIALS.includes(name)) return { kind: 'misconfigured', code: name };
  if (TLS_FAULT.test(system)) return { kind: 'misconfigured', code: system };
  return { kind: 'unavailable', code: system === '' ? word(name, 'no-answer') : system };
}

/** @returns RetlError `artifact.unavailable` or `artifact.misconfigured`, with the artifact it is about, if any */
export function s3Error(fault: S3Fault, reference: ArtifactReference | null): RetlError {
  const about = reference === null ? {} : { reference };
  switch (fault.kind) {
    case 'misconfigured':
      return new RetlError('artifact.misconfigured', { code: fault.code, ...about });
    case 'unavailable':
    case 'conflict':
      return new RetlError('artifact.unavailable', { code: fault.code, ...about });
    case 'exists':
    case 'missing':
      // The store has said the one and the other by turns.
      return new RetlError('artifact.unavailable', { code: fault.kind, ...about });
  }
}

/** A name that is a code of its own, else `otherwise`: never a sentence. */
function word(name: string, otherwise: string): string {
  return /^[A-Z][A-Za-z0-9]{2,60}$/.test(name) && name !== 'Error' ? name : otherwise;
}

interface Answer {
  readonly status: number | null;
  readonly name: string;
  /** Node's code, of the first cause that has one; empty where none has. */
  readonly system: string;
}

function read(error: unknown): Answer {
  if (!(error instanceof Error)) return { status: null, name: '', system: '' };
  const metadata = '$metadata' in error ? error.$metadata : undefined;
  const known = typeof metadata === 'object' && metadata !== null && 'httpStatusCode' in metadata;
  const status = known ? metadata.httpStatusCode : undefined;
  return { status: typeof status === 'number' ? status : null, name: error.name, system: systemCode(error) };
}

function systemCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return systemCode(error instanceof AggregateError ? error.errors[0] : error.cause);
}
