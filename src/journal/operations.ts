/**
 * The planned operations of a run, read by ranges of their dense sequence: both sides of the join bounded, a page ahead
 * of what is being sent. What a request is to be made of is proven first (rule 2): texts that do not hash to what was stored
 * with them are somebody else's, and are not sent.
 */

import { RetlError } from '../domain/errors.ts';
import { type Sequence, sequence } from '../domain/ids.ts';
import type { Action } from '../domain/request.ts';
import { big, bytes, bytesOrNull, type Row, textOrNull } from './decode.ts';
import { type Queryable, run } from './pool.ts';
import { type RowFault, RowProof } from './row-proof.ts';
import type { RunRecord } from './run-record.ts';

/** What an operation id is made of. */
export interface OperationHashes {
  readonly sequence: Sequence;
  readonly identityHash: Buffer;
  /** `null` for removals. */
  readonly payloadHash: Buffer | null;
  /** `null`: that is the identity hash. */
  readonly removalHash: Buffer | null;
}

export interface StoredOperation extends OperationHashes {
  readonly identity: string;
  /** The stored `upsert` or `remove` payload. */
  readonly payload: string;
}

/**
 * Operations `from` to `to`, inclusive, in order, each with an identity that is proven, and a removal with its bytes.
 * @throws JournalError; RetlError `journal.damaged` where one of them is missing, or is not what was stored
 */
export async function readOperations(
  db: Queryable,
  record: RunRecord,
  action: Action,
  from: bigint,
  to: bigint,
): Promise<readonly StoredOperation[]> {
  const rows = await run(db, operationsQuery(record, action), [from, to]);
  requireAll(record, rows, to - from + 1n);
  const proof = new RowProof(record.identityFoldings);
  const faults = new Faults();
  const operations: StoredOperation[] = [];
  for (const row of rows) {
    const [identity, payload] = [textOrNull(row, 'identity'), textOrNull(row, 'payload')];
    const identityHash = bytesOrNull(row, 'identity_hash');
    const removalHash = bytesOrNull(row, 'removal_hash');
    // A million members pass here: spreading objects would cost more than the hash.
    const fault = proof.fault({
      identity,
      identityHash,
      removal: action === 'remove' ? payload : undefined,
      removalHash,
    });
    if (fault !== null || identity === null || identityHash === null)
      faults.add(fault ?? 'identity', identityHash);
    else if (payload === null) faults.add('payload', identityHash);
    else
      operations.push({
        sequence: sequence(big(row, 'sequence')),
        identityHash,
        payloadHash: bytesOrNull(row, 'payload_hash'),
        removalHash,
        identity,
        payload,
      });
  }
  faults.throwIfAny(record);
  return operations;
}

/** The same without their texts, and so without a proof of them: of what is not sent. @throws as above, where one is missing */
export async function readOperationHashes(
  db: Queryable,
  record: RunRecord,
  from: bigint,
  to: bigint,
): Promise<readonly OperationHashes[]> {
  const query = `select sequence, identity_hash, payload_hash, removal_hash
    from retl.operation_${record.run} where sequence between $1 and $2 order by sequence`;
  const rows = await run(db, query, [from, to]);
  requireAll(record, rows, to - from + 1n);
  return rows.map((row) => ({
    sequence: sequence(big(row, 'sequence')),
    identityHash: bytes(row, 'identity_hash'),
    payloadHash: bytesOrNull(row, 'payload_hash'),
    removalHash: bytesOrNull(row, 'removal_hash'),
  }));
}

function requireAll(record: RunRecord, rows: readonly Row[], wanted: bigint): void {
  const lacking = wanted - BigInt(rows.length);
  if (lacking !== 0n) throw damaged(record, { rule: 'missing', count: Number(lacking) });
}

/** Rows of a page that are not what was stored: how many, and of the first which rule and whose hash, never a value. */
class Faults {
  #count = 0;
  #first: { readonly rule: RowFault | 'payload'; readonly identityHash?: string } | null = null;

  add(rule: RowFault | 'payload', identityHash: Buffer | null): void {
    this.#count += 1;
    const hash = identityHash?.toString('hex');
    this.#first ??= hash === undefined ? { rule } : { rule, identityHash: `sha256:${hash}` };
  }

  throwIfAny(record: RunRecord): void {
    if (this.#first !== null) throw damaged(record, { ...this.#first, count: this.#count });
  }
}

function damaged(
  record: RunRecord,
  details: { readonly rule: string; readonly count: number; readonly identityHash?: string },
): RetlError {
  return new RetlError('journal.damaged', { mirror: record.mirror, run: record.run.toString(), ...details });
}

/** The query for one run: the names of its tables hold its numbers, never anything typed by a person. */
export function operationsQuery(record: RunRecord, action: Action): string {
  const own = 'sequence, identity_hash, payload_hash, removal_hash, identity';
  if (action === 'remove') {
    return `select ${own}, remove as payload
      from retl.operation_${record.run} where sequence between $1 and $2 and change = 'r' order by sequence`;
  }
  if (record.operationsHoldBytes) {
    return `select ${own}, upsert as payload
      from retl.operation_${record.run} where sequence between $1 and $2 order by sequence`;
  }
  return `select o.sequence, o.identity_hash, o.payload_hash, o.removal_hash, g.identity, g.upsert as payload
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
