/**
 * The planned operations of a run, read by ranges of their dense sequence: both sides of the join bounded, a page ahead
 * of what is being sent.
 */

import { type Sequence, sequence } from '../domain/ids.ts';
import type { Action } from '../domain/request.ts';
import { big, bytes, text } from './decode.ts';
import { type Queryable, run } from './pool.ts';
import type { RunRecord } from './run-record.ts';

export interface StoredOperation {
  readonly sequence: Sequence;
  readonly identityHash: Buffer;
  /** Empty for removals. */
  readonly payloadHash: Buffer;
  readonly identity: string;
  /** The stored `upsert` or `remove` payload. */
  readonly payload: string;
}

/** Operations `from` to `to`, inclusive, in order. @throws JournalError; Error where one of them is missing. */
export async function readOperations(
  db: Queryable,
  record: RunRecord,
  action: Action,
  from: bigint,
  to: bigint,
): Promise<readonly StoredOperation[]> {
  const rows = (await run(db, operationsQuery(record, action), [from, to])).map((row) => ({
    sequence: sequence(big(row, 'sequence')),
    identityHash: bytes(row, 'identity_hash'),
    payloadHash: bytes(row, 'payload_hash'),
    identity: text(row, 'identity'),
    payload: text(row, 'payload'),
  }));
  if (BigInt(rows.length) !== to - from + 1n)
    throw new Error('planned operations are missing from the journal');
  return rows;
}

/** The query for one run: the names of its tables hold its numbers, never anything typed by a person. */
export function operationsQuery(record: RunRecord, action: Action): string {
  if (action === 'remove') {
    return `select sequence, identity_hash, ''::bytea as payload_hash, identity, remove as payload
      from retl.operation_${record.run} where sequence between $1 and $2 and change = 'r' order by sequence`;
  }
  if (record.operationsHoldBytes) {
    return `select sequence, identity_hash, payload_hash, identity, upsert as payload
      from retl.operation_${record.run} where sequence between $1 and $2 order by sequence`;
  }
  return `select o.sequence, o.identity_hash, o.payload_hash, g.identity, g.upsert as payload
    from retl.operation_${record.run} o
    join retl.generation_${record.generation} g on g.row_no = o.row_no and ${boundedRows(record.run)}
    where o.sequence between $1 and $2 order by o.sequence`;
}

/**
 * Bounds the generation's side of a page, too: operations are numbered in the order of its rows. Bounded on one side only,
 * each page would read the whole generation.
 */
export function boundedRows(runNumber: bigint): string {
  const rowOf = (parameter: string) =>
    `(select e.row_no from retl.operation_${runNumber} e where e.sequence = ${parameter})`;
  return `g.row_no between ${rowOf('$1')} and ${rowOf('$2')}`;
}
