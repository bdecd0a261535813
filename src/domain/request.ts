/**
 * Requests: how operations become the exact bytes of a body, where one request ends and the next begins, and the ids
 * that serve as idempotency keys (design.md sections 4 and 5; rule 2: the rebuilt bytes must be provably the same).
 *
 * Everything here is a function of its arguments, byte for byte, for ever: a stored hash is compared with it later.
 */

import { canonicalString } from './canonical-json.ts';
import { RetlError } from './errors.ts';
import {
  type BatchId,
  type OperationId,
  type RevisionId,
  type RunId,
  type Sha256,
  sha256FromHex,
  type TargetId,
} from './ids.ts';
import { utf8Length } from './utf8.ts';

export type Action = 'upsert' | 'remove';

/**
 * How the core turns operations into the exact bytes of a request body, so that batches can be cut by exact size and
 * a lost body can be rebuilt and proven the same. body = open + join(itemOpen + item + itemClose, separator) + close,
 * where an item is the operation's stored payload (canonical JSON), with the operation id spliced in when `operationId`
 * names a field.
 */
export interface RequestFrame {
  readonly open: string;
  readonly itemOpen: string;
  readonly itemClose: string;
  readonly separator: string;
  readonly close: string;
  /** Adds this top-level field, holding the operation id, as first field of each item; `null`: items as stored. */
  readonly operationId: string | null;
}

/** A JSON array of the payloads as they are stored. */
export const ARRAY_FRAME: RequestFrame = {
  open: '[',
  itemOpen: '',
  itemClose: '',
  separator: ',',
  close: ']',
  operationId: null,
};

/** A line for each payload as it is stored; the last one ends with its line feed too. */
export const LINES_FRAME: RequestFrame = {
  open: '',
  itemOpen: '',
  itemClose: '\n',
  separator: '',
  close: '',
  operationId: null,
};

export interface Operation {
  readonly id: OperationId;
  /** Canonical JSON of the identity. */
  readonly identity: string;
  /** Canonical JSON of the stored `upsert` or `remove` payload: an object. */
  readonly payload: string;
}

/** `sha256:` and 64 hex digits: every operation id has this many bytes. */
const ID_BYTES = 71;

/** Bytes of a body that holds no operation. */
export function frameOverhead(frame: RequestFrame): number {
  return utf8Length(frame.open) + utf8Length(frame.close);
}

/** Bytes that one operation adds to its payload's own, separator excluded, for any payload but the empty object. */
export function itemOverhead(frame: RequestFrame): number {
  const around = utf8Length(frame.itemOpen) + utf8Length(frame.itemClose);
  if (frame.operationId === null) return around;
  // "name":"id",
  return around + utf8Length(canonicalString(frame.operationId)) + ID_BYTES + 4;
}

/**
 * The operation as it stands in the body.
 * @throws RetlError `config.invalid` where the payload already has the field that is to hold the operation id: two
 * fields of one name would let the provider choose.
 */
export function itemText(frame: RequestFrame, operation: Operation): string {
  const { payload } = operation;
  if (frame.operationId === null) return frame.itemOpen + payload + frame.itemClose;
  const name = canonicalString(frame.operationId);
  if (hasField(payload, frame.operationId, name)) {
    throw new RetlError('config.invalid', { rule: 'operation-id-field-taken', field: frame.operationId });
  }
  const rest = payload === '{}' ? '}' : `,${payload.slice(1)}`;
  return `${frame.itemOpen}{${name}:"${operation.id}"${rest}${frame.itemClose}`;
}

function hasField(payload: string, field: string, name: string): boolean {
  if (!payload.startsWith('{')) throw new Error('a payload must be the canonical JSON of an object');
  // The text may also stand deeper, or within a string: only then is it worth parsing.
  return payload.includes(`${name}:`) && Object.hasOwn(JSON.parse(payload), field);
}

/** Exact bytes of `itemText`. */
export function itemBytes(frame: RequestFrame, operation: Operation): number {
  const spliced = frame.operationId !== null && operation.payload === '{}' ? -1 : 0; // no comma
  return itemOverhead(frame) + spliced + utf8Length(operation.payload);
}

/** The body of a request, to the byte. */
export function buildBody(frame: RequestFrame, operations: readonly Operation[]): string {
  return frame.open + operations.map((op) => itemText(frame, op)).join(frame.separator) + frame.close;
}

/**
 * Bytes that a payload may have at most, so that its operation alone fits a request of `limitBytes`: what the seal
 * compares with `octet_length`. 0 where nothing fits.
 */
export function largestPayloadAllowed(frame: RequestFrame, limitBytes: number): number {
  return Math.max(0, limitBytes - frameOverhead(frame) - itemOverhead(frame));
}

export interface RequestLimits {
  /** Operations in one request, at most; at least 1. */
  readonly rows: number;
  /** Bytes of one request's body, at most. */
  readonly bytes: number;
}

export interface Cut {
  /** Index after the last operation of the request. */
  readonly end: number;
  /** Exact bytes of its body. */
  readonly bytes: number;
}

/**
 * Where the request that begins at `from` ends: as many operations as fit, in order, none split.
 * @throws RetlError `data.operation-too-large` where the first alone does not fit; the seal has refused such a one,
 * unless the limit was lowered since.
 */
export function cutBatch(
  frame: RequestFrame,
  operations: readonly Operation[],
  limits: RequestLimits,
  from = 0,
): Cut {
  const separator = utf8Length(frame.separator);
  let bytes = frameOverhead(frame);
  let end = from;
  for (const operation of operations.slice(from, from + Math.max(1, limits.rows))) {
    const grown = bytes + (end === from ? 0 : separator) + itemBytes(frame, operation);
    if (grown > limits.bytes) break;
    bytes = grown;
    end += 1;
  }
  const first = operations[from];
  if (end === from && first !== undefined) {
    throw new RetlError('data.operation-too-large', { operation: first.id, limit: limits.bytes });
  }
  return { end, bytes };
}

/**
 * Text whose hash is a payload's hash: a member is sent again when it changes. `writeForm` is the adapter's, and empty
 * where nothing but the payload decides how it arrives; canonical JSON holds no line end, so that no two pairs share a text.
 */
export function payloadHashInput(writeForm: string): (upsert: string) => string {
  return writeForm === '' ? (upsert) => upsert : (upsert) => `${writeForm}\n${upsert}`;
}

/** What an operation id is made of (design.md section 5). */
export interface OperationKey {
  /** Unique beyond this journal: the log's random id and the mirror's name, for ids go to providers as keys. */
  readonly mirror: string;
  readonly run: RunId;
  readonly revision: RevisionId;
  readonly target: TargetId;
  readonly action: Action;
  readonly identityHash: Sha256;
  /** Of the upsert; `null` for a removal. */
  readonly payloadHash: Sha256 | null;
  /**
   * Of the bytes that its removal sends, or will send once it is accepted; `null` where they hash to `identityHash`, as they do
   * wherever the identity is removed as it is.
   */
  readonly removalHash: Sha256 | null;
  /** Which attempt to send this operation in this run, from 1. */
  readonly ordinal: number;
}

/**
 * Idempotency key of one operation: the hash of a canonical JSON array, so that no two keys share an encoding.
 * `sha256Hex` hashes the UTF-8 bytes of a text to 64 lower-case hex digits.
 */
export function operationId(key: OperationKey, sha256Hex: (text: string) => string): OperationId {
  return sha256FromHex(
    sha256Hex(
      `["operation",${canonicalString(key.mirror)},"${key.run}","${key.revision}","${key.target}","${key.action}",` +
        `"${key.identityHash}",${named(key.payloadHash)},${named(key.removalHash)},${key.ordinal}]`,
    ),
  );
}

function named(hash: Sha256 | null): string {
  return hash === null ? 'null' : `"${hash}"`;
}

/** What a batch id is made of. Steps of a session are batches without operations. */
export interface BatchKey {
  /** As in {@link OperationKey}: a step has no operations whose ids would tell two journals apart. */
  readonly mirror: string;
  readonly run: RunId;
  readonly action: Action | 'init' | 'finish' | 'abort';
  /** In the order of the request. */
  readonly operations: readonly OperationId[];
  /** Which attempt to send these operations in this run, from 1. */
  readonly ordinal: number;
}

/** Idempotency key of one request; encoded as {@link operationId} is. */
export function batchId(key: BatchKey, sha256Hex: (text: string) => string): BatchId {
  const operations = key.operations.length === 0 ? '' : `"${key.operations.join('","')}"`;
  return sha256FromHex(
    sha256Hex(
      `["batch",${canonicalString(key.mirror)},"${key.run}","${key.action}",${key.ordinal},[${operations}]]`,
    ),
  );
}
