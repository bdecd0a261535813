/**
 * A request as rows of one or several shapes. Rows whose payloads have different fields are written by different
 * statements: a field that is absent leaves its column alone, while one that is null clears it.
 */

import { ARRAY_FRAME } from '../../domain/request.ts';
import type { BatchRequest, Operation, OperationOutcome } from '../port.ts';

/** One operation and its place in the request. */
export interface Row {
  readonly index: number;
  readonly payload: string;
}

/** Rows with the same fields; `body` is their JSON array. */
export interface Shape {
  readonly fields: readonly string[];
  readonly rows: readonly Row[];
  readonly body: string;
}

export interface ReadRequest {
  readonly shapes: readonly Shape[];
  /** Rows that break a rule before the server sees them, by index. */
  readonly rejected: ReadonlyMap<number, Rejection>;
}

export function bodyOf(rows: readonly Row[]): string {
  return ARRAY_FRAME.open + rows.map((row) => row.payload).join(ARRAY_FRAME.separator) + ARRAY_FRAME.close;
}

/** `identity`: the identity fields that the table is known by. */
export function readRequest(request: BatchRequest, identity: readonly string[]): ReadRequest {
  const rejected = new Map<number, Rejection>();
  const shapes = new Map<string, { fields: readonly string[]; rows: Row[] }>();
  for (const [index, operation] of request.operations.entries()) {
    const payload = objectOf(operation.payload);
    const fault = identityFault(operation, payload, identity);
    if (fault !== null) {
      rejected.set(index, fault);
      continue;
    }
    const fields = Object.keys(payload);
    const key = JSON.stringify(fields);
    const shape = shapes.get(key) ?? { fields, rows: [] };
    if (shape.rows.length === 0) shapes.set(key, shape);
    shape.rows.push({ index, payload: operation.payload });
  }
  const whole = shapes.size === 1 && rejected.size === 0;
  return {
    rejected,
    shapes: [...shapes.values()].map(({ fields, rows }) => ({
      fields,
      rows,
      body: whole ? request.body : bodyOf(rows),
    })),
  };
}

/**
 * NULL is not equal to itself: it would be inserted anew each time, and a removal would find nothing. An identity that
 * is not the one in the payload could never be removed again.
 */
function identityFault(
  operation: Operation,
  payload: Readonly<Record<string, unknown>>,
  fields: readonly string[],
): Rejection | null {
  const identity = objectOf(operation.identity);
  const names = Object.keys(identity);
  if (names.length !== fields.length || !fields.every((field) => Object.hasOwn(identity, field))) {
    return rejected('identity-fields', "The member's identity has other fields than the table's identity.");
  }
  for (const field of fields) {
    if (!Object.hasOwn(payload, field) || !sameJson(payload[field], identity[field])) {
      return rejected('identity-mismatch', 'The payload does not hold the identity as it is.');
    }
    if (identity[field] === null) return rejected('identity-null', 'An identity field is null.');
  }
  return null;
}

function sameJson(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

export type Rejection = Extract<OperationOutcome, { kind: 'rejected' }>;

export function rejected(code: string, reason: string): Rejection {
  return { kind: 'rejected', code, reason };
}

function objectOf(json: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error('an identity or a payload must be the canonical JSON of an object');
  }
  return { ...value };
}
