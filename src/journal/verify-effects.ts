/**
 * What an entry of the log says was accepted, held against what the entry is bound to: its batch's id is made again from the
 * rows that its effects are read from, and payloads from their hashes. Another identity or payload would give another id.
 */

import { createHash } from 'node:crypto';
import { revisionId, type Sha256, sha256FromHex } from '../domain/ids.ts';
import { batchId, operationId, payloadHashInput } from '../domain/request.ts';
import { big, number, one, text } from './decode.ts';
import { JournalError } from './errors.ts';
import { type Effect, type LogEntry, readOperationsOf } from './log.ts';
import { type Queryable, run } from './pool.ts';

/** Stands for the payload hash in the id of a removal. */
const NO_PAYLOAD = sha256FromHex('0'.repeat(64));

const BATCH = `
  select b.sending, r.revision_id, r.write_form, m.name as mirror
  from retl.batch b join retl.run r using (run_id) join retl.mirror m using (mirror_id)
  where b.batch_id = decode($1, 'hex')`;

/** `null`: it is what was accepted. `effects`: rows are missing, or are not those that their hashes were taken of. */
export async function checkEffects(
  db: Queryable,
  logId: string,
  entry: LogEntry,
): Promise<'effects' | 'batch-id' | null> {
  const operations = await operationsInOrder(db, entry);
  if (BigInt(operations.length) !== (entry.last ?? 0n) - (entry.first ?? 0n) + 1n) return 'effects';
  const [batch] = await run(db, BATCH, [entry.batch.slice('sha256:'.length)]);
  if (batch === undefined) return 'batch-id';
  const form = text(batch, 'write_form');
  if (operations.some((op) => op.payloadHash !== null && payloadHash(form, op.payload) !== op.payloadHash))
    return 'effects';
  const ordinal = number(batch, 'sending');
  const mirror = `${logId}/${text(batch, 'mirror')}`;
  const revision = revisionId(big(batch, 'revision_id'));
  const { run: runId, target } = entry;
  const action = entry.kind === 'removals' ? 'remove' : 'upsert';
  const idOf = ({ identityHash, payloadHash: hash }: Effect) =>
    operationId(
      {
        mirror,
        run: runId,
        revision,
        target,
        action,
        identityHash,
        payloadHash: hash ?? NO_PAYLOAD,
        ordinal,
      },
      hexOfText,
    );
  const id = batchId({ mirror, run: runId, action, operations: operations.map(idOf), ordinal }, hexOfText);
  return id === entry.batch ? null : 'batch-id';
}

/** Effects are read by hash; a batch is made of its operations in the order of their numbers. None where their table is gone. */
async function operationsInOrder(db: Queryable, entry: LogEntry): Promise<readonly Effect[]> {
  try {
    return [...(await readOperationsOf(db, entry))].sort((a, b) => (a.sequence < b.sequence ? -1 : 1));
  } catch (error) {
    if (error instanceof JournalError && error.sqlState === '42P01') return [];
    throw error;
  }
}

const WRITE_FORM = 'select write_form from retl.run where run_id = $1';

/** What besides a payload its hash is taken of, in a run. @throws JournalError */
export async function writeFormOf(db: Queryable, runNumber: bigint): Promise<string> {
  return text(one(await run(db, WRITE_FORM, [runNumber])), 'write_form');
}

export function payloadHash(writeForm: string, payload: string): Sha256 {
  return sha256FromHex(hexOfText(payloadHashInput(writeForm)(payload)));
}

function hexOfText(value: string): string {
  return createHash('sha256').update(value).digest('hex');
}
