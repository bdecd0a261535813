/**
 * What an entry of the log says was accepted, held against what the entry is bound to: its batch's id is made again from the
 * hashes of the rows that its effects are read from, and every text from its hash: payload, identity and the bytes of a removal.
 * Other hashes would give another id.
 */

import { revisionId, type Sha256, sha256FromHex } from '../domain/ids.ts';
import { batchId, operationId, payloadHashInput } from '../domain/request.ts';
import { big, bytesOrNull, number, one, type Row, text, textOrNull, texts } from './decode.ts';
import { JournalError } from './errors.ts';
import { sha256Hex } from './hash.ts';
import { actionOf, type LogEntry, operationRowsOf } from './log.ts';
import { type Queryable, run } from './pool.ts';
import { type RowFault, RowProof } from './row-proof.ts';

export type EffectFault =
  /** Rows or payloads are missing, or are not those that their hashes were taken of. */
  | 'effects'
  /** The rows are not those of its batch. */
  | 'batch-id'
  | RowFault;

const BATCH = `
  select b.sending, r.revision_id, r.write_form, m.name as mirror, t.identity_foldings
  from retl.batch b join retl.run r using (run_id) join retl.mirror m using (mirror_id)
  join retl.target t on t.target_id = r.target_id
  where b.batch_id = decode($1, 'hex')`;

/** `null`: it is what was accepted. */
export async function checkEffects(
  db: Queryable,
  logId: string,
  entry: LogEntry,
): Promise<EffectFault | null> {
  const operations = (await rowsInOrder(db, entry)).map(decode);
  if (BigInt(operations.length) !== (entry.last ?? 0n) - (entry.first ?? 0n) + 1n) return 'effects';
  const [batch] = await run(db, BATCH, [entry.batch.slice('sha256:'.length)]);
  if (batch === undefined) return 'batch-id';
  if (!operations.every((op) => hasPayload(op, actionOf(entry), text(batch, 'write_form')))) return 'effects';
  if (idOf(logId, entry, batch, operations) !== entry.batch) return 'batch-id';
  const proof = new RowProof(texts(batch, 'identity_foldings'));
  for (const op of operations) {
    const fault = op.other ?? proof.fault(op);
    if (fault !== null) return fault;
  }
  return null;
}

type Operation = ReturnType<typeof decode>;

/** Any of it may be missing of a damaged journal. */
function decode(row: Row) {
  return {
    identityHash: bytesOrNull(row, 'identity_hash'),
    payloadHash: bytesOrNull(row, 'payload_hash'),
    removalHash: bytesOrNull(row, 'removal_hash'),
    identity: textOrNull(row, 'identity'),
    payload: textOrNull(row, 'payload'),
    removal: textOrNull(row, 'removal'),
    other: faultOf(textOrNull(row, 'other')),
  };
}

function faultOf(other: string | null): EffectFault | null {
  return other === 'identity' || other === 'removal' || other === 'effects' ? other : null;
}

function hasPayload({ payload, payloadHash: hash }: Operation, action: string, writeForm: string): boolean {
  if (payload === null || action === 'remove') return payload !== null;
  return payloadHash(writeForm, payload) === named(hash);
}

/** The id of a batch of these operations; `null`: a hash is missing. */
function idOf(logId: string, entry: LogEntry, batch: Row, operations: readonly Operation[]): Sha256 | null {
  const ordinal = number(batch, 'sending');
  const mirror = `${logId}/${text(batch, 'mirror')}`;
  const revision = revisionId(big(batch, 'revision_id'));
  const { run: runId, target } = entry;
  const action = actionOf(entry);
  const ids: Sha256[] = [];
  for (const op of operations) {
    const identityHash = named(op.identityHash);
    if (identityHash === null) return null;
    const hashes = { identityHash, payloadHash: named(op.payloadHash), removalHash: named(op.removalHash) };
    ids.push(operationId({ mirror, run: runId, revision, target, action, ...hashes, ordinal }, sha256Hex));
  }
  return batchId({ mirror, run: runId, action, operations: ids, ordinal }, sha256Hex);
}

/** Effects are read by hash; a batch is made of its operations in the order of their numbers. None where their table is gone. */
async function rowsInOrder(db: Queryable, entry: LogEntry): Promise<readonly Row[]> {
  try {
    const rows = await operationRowsOf(db, entry);
    return [...rows].sort((a, b) => (big(a, 'sequence') < big(b, 'sequence') ? -1 : 1));
  } catch (error) {
    if (error instanceof JournalError && error.sqlState === '42P01') return [];
    throw error;
  }
}

/** Whatever is no hash is missing. */
function named(hash: Buffer | null): Sha256 | null {
  return hash?.length === 32 ? sha256FromHex(hash.toString('hex')) : null;
}

const WRITE_FORM = 'select write_form from retl.run where run_id = $1';

/** What besides a payload its hash is taken of, in a run. @throws JournalError */
export async function writeFormOf(db: Queryable, runNumber: bigint): Promise<string> {
  return text(one(await run(db, WRITE_FORM, [runNumber])), 'write_form');
}

export function payloadHash(writeForm: string, payload: string): Sha256 {
  return sha256FromHex(sha256Hex(payloadHashInput(writeForm)(payload)));
}
