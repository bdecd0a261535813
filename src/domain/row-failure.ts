/**
 * How a row fails: inside the mapping as a {@link RowFailure}, which knows names only; outside as a RetlError, to which
 * the hash of the row's key is added, so that the row can be found again without showing a value.
 */

import { type ErrorCode, type ErrorDetails, RetlError } from './errors.ts';
import type { MappedRow } from './member.ts';
import { InvalidValue, type RawRow } from './source-row.ts';

/** Details are names and rules; the key hash comes later. */
export class RowFailure extends Error {
  override readonly name = 'RowFailure';
  constructor(
    readonly code: Extract<ErrorCode, `data.${string}`>,
    readonly details: ErrorDetails,
  ) {
    super(code);
  }
}

/** What to throw for a broken value, given where it stands; anything else is passed on as it is. */
export function named(error: unknown, place: ErrorDetails): unknown {
  return error instanceof InvalidValue
    ? new RowFailure('data.invalid-value', { rule: error.rule, ...place })
    : error;
}

/** The mapping of a row, its failures turned into errors for people. `keyHash` is asked only then. */
export function reporting(
  map: (row: RawRow) => MappedRow,
  keyHash: (row: RawRow) => string | null,
): (row: RawRow) => MappedRow {
  return (row) => {
    try {
      return map(row);
    } catch (error) {
      if (!(error instanceof RowFailure)) throw error;
      const hash = keyHash(row);
      throw new RetlError(error.code, hash === null ? error.details : { ...error.details, keyHash: hash });
    }
  };
}
