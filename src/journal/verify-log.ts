/**
 * Recomputes the log independently of the database that wrote it: the chain of entry hashes, the rejected operations that
 * each entry leaves out, and, where asked, each batch's id from the operations that its effects are read from.
 */

import { createHash } from 'node:crypto';
import { type LogPosition, logPosition, revisionId, type Sha256, sha256FromHex } from '../domain/ids.ts';
import { batchId, operationId, payloadHashInput } from '../domain/request.ts';
import { big, number, one, text } from './decode.ts';
import {
  type Effect,
  entryHash,
  int64,
  type LogEntry,
  type LogHead,
  logHead,
  readEntries,
  readOperationsOf,
} from './log.ts';
import { type Queryable, run } from './pool.ts';

export type LogVerdict =
  | { readonly kind: 'intact'; readonly position: LogPosition }
  /** The first entry that is not what was written, and in which respect. */
  | {
      readonly kind: 'broken';
      readonly position: LogPosition;
      readonly rule:
        | 'position'
        | 'previous-hash'
        | 'entry-hash'
        | 'left-out'
        | 'effects'
        | 'batch-id'
        | 'head';
    };

const PAGE = 500;
const GENESIS = sha256FromHex('0'.repeat(64));
/** Stands for the payload hash in the id of a removal. */
const NO_PAYLOAD = GENESIS;

/**
 * Verifies the log from its beginning to its head.
 * @param options.effects also reads every effect and proves it by its batch's id: as much work as a replay.
 * @throws JournalError
 */
export async function verifyLog(
  db: Queryable,
  options: { readonly effects: boolean } = { effects: false },
): Promise<LogVerdict> {
  const head = await logHead(db);
  let position = logPosition(0);
  let hash = GENESIS;
  while (position < head.position) {
    const entries = await readEntries(db, position, PAGE);
    if (entries.length === 0) return broken(logPosition(position + 1n), 'position');
    for (const entry of entries) {
      if (entry.position > head.position) break;
      const rule =
        checkEntry(entry, position, hash) ?? (await checkOperations(db, head, entry, options.effects));
      if (rule !== null) return broken(logPosition(position + 1n), rule);
      position = entry.position;
      hash = entry.entryHash;
    }
  }
  return hash === head.entryHash ? { kind: 'intact', position } : broken(position, 'head');
}

type Rule = Extract<LogVerdict, { kind: 'broken' }>['rule'];

function broken(position: LogPosition, rule: Rule): LogVerdict {
  return { kind: 'broken', position, rule };
}

function checkEntry(entry: LogEntry, before: LogPosition, hash: Sha256): Rule | null {
  if (entry.position !== before + 1n) return 'position';
  if (entry.previousHash !== hash) return 'previous-hash';
  return entryHash(entry) === entry.entryHash ? null : 'entry-hash';
}

const LEFT_OUT = `
  select sequence from retl.rejection where run_id = $1 and sequence between $2 and $3 order by sequence`;

async function checkOperations(
  db: Queryable,
  head: LogHead,
  entry: LogEntry,
  effects: boolean,
): Promise<Rule | null> {
  if (entry.first === null || entry.last === null) return null;
  const rejected = await run(db, LEFT_OUT, [entry.run, entry.first, entry.last]);
  const leftOut = createHash('sha256');
  for (const row of rejected) leftOut.update(int64(big(row, 'sequence')));
  if (sha256FromHex(leftOut.digest('hex')) !== entry.effectsHash) return 'left-out';
  if (BigInt(entry.effects + rejected.length) !== entry.last - entry.first + 1n) return 'effects';
  return effects ? checkBatch(db, head, entry) : null;
}

const BATCH = `
  select b.sending, r.revision_id, r.write_form, m.name as mirror
  from retl.batch b join retl.run r using (run_id) join retl.mirror m using (mirror_id)
  where b.batch_id = decode($1, 'hex')`;

/** The id of the batch, made again from the rows: another identity or payload would give another id. */
async function checkBatch(db: Queryable, head: LogHead, entry: LogEntry): Promise<Rule | null> {
  // Effects are read by hash; a batch is made of its operations in the order of their numbers.
  const operations = [...(await readOperationsOf(db, entry))].sort((a, b) =>
    a.sequence < b.sequence ? -1 : 1,
  );
  if (BigInt(operations.length) !== (entry.last ?? 0n) - (entry.first ?? 0n) + 1n) return 'effects';
  const batch = one(await run(db, BATCH, [entry.batch.slice('sha256:'.length)]));
  const form = text(batch, 'write_form');
  if (operations.some((op) => op.payloadHash !== null && hashOf(form, op.payload) !== op.payloadHash))
    return 'effects';
  const ordinal = number(batch, 'sending');
  const mirror = `${head.logId}/${text(batch, 'mirror')}`;
  const revision = revisionId(big(batch, 'revision_id'));
  const { run: runId, target } = entry;
  const action = entry.kind === 'removals' ? 'remove' : 'upsert';
  const idOf = (op: Effect) =>
    operationId(
      {
        mirror,
        run: runId,
        revision,
        target,
        action,
        identityHash: op.identityHash,
        payloadHash: op.payloadHash ?? NO_PAYLOAD,
        ordinal,
      },
      hexOfText,
    );
  const id = batchId({ mirror, run: runId, action, operations: operations.map(idOf), ordinal }, hexOfText);
  return id === entry.batch ? null : 'batch-id';
}

function hexOfText(value: string): string {
  return createHash('sha256').update(value).digest('hex');
}

function hashOf(writeForm: string, payload: string): Sha256 {
  return sha256FromHex(hexOfText(payloadHashInput(writeForm)(payload)));
}
