/**
 * What happened to one member, as the log has it: what an index of the kind `membership-history` that is built now would say. Of
 * what lies before the newest log snapshot only that remains which the snapshot says. Without values; of the snapshot's rows
 * those alone are told who may read them.
 */

import type { FoundChange } from '../domain/found.ts';
import {
  type LogPosition,
  logPosition,
  runId,
  type Sha256,
  sha256FromHex,
  type TargetId,
} from '../domain/ids.ts';
import { isAccepted, type RunTrace } from '../domain/member-story.ts';
import { hashBytes } from './batches.ts';
import { big, date, type Row, text } from './decode.ts';
import { JournalError } from './errors.ts';
import { latestSnapshot } from './log-snapshot.ts';
import { tracesOf } from './member-trace.ts';
import { type Queryable, run } from './pool.ts';

export interface MemberChanges {
  /** Newest first. */
  readonly changes: readonly FoundChange[];
  /** Whether there are more than were asked for. */
  readonly more: boolean;
}

/** Within a transaction that sees one state of the journal. @throws JournalError */
export async function changesOf(
  db: Queryable,
  target: TargetId,
  identityHash: Sha256,
  limit: number,
): Promise<MemberChanges> {
  const snapshot = await latestSnapshot(db);
  const found: Undated[] = [];
  for await (const change of acceptedOf(db, target, identityHash)) {
    if (found.length > limit || change.position <= (snapshot?.boundary ?? 0n)) break;
    found.push(change);
  }
  if (snapshot !== null && found.length <= limit) {
    const held = await heldIn(db, snapshot.id, target, identityHash);
    if (held !== null) found.push(held);
  }
  const at = await timesOf(db, found);
  const dated = found.map((change) => ({ ...change, at: at.get(change.position) ?? new Date(0) }));
  return { changes: dated.slice(0, limit), more: dated.length > limit };
}

/** Since when a member is held without a break; `null`: that cannot be told to this role. @throws JournalError */
export async function heldSince(
  db: Queryable,
  target: TargetId,
  identityHash: Sha256,
): Promise<Pick<FoundChange, 'position' | 'at'> | null> {
  for (let limit = 8; ; limit *= 8) {
    const { changes, more } = await changesOf(db, target, identityHash, limit);
    const begun = changes.find(({ action }) => action === 'add' || action === 'held');
    if (begun !== undefined || !more) return begun ?? null;
  }
}

type Undated = Omit<FoundChange, 'at'>;

const CHUNK = 100;

async function* acceptedOf(db: Queryable, target: TargetId, identityHash: Sha256): AsyncGenerator<Undated> {
  let before: bigint | null = null;
  let traces: readonly RunTrace[];
  do {
    traces = await tracesOf(db, target, identityHash, before, CHUNK);
    for (const trace of traces) {
      before = BigInt(trace.runId);
      const change = changeIn(trace);
      if (change !== null) yield change;
    }
  } while (traces.length === CHUNK);
}

/** `null`: nothing that was accepted, or what was held was sent again as it is. */
function changeIn({ runId: of, operation }: RunTrace): Undated | null {
  const position = operation?.batches.at(-1)?.position ?? null;
  if (operation === null || operation.change === 'resend' || position === null || !isAccepted(operation))
    return null;
  const { change: action, payloadHash } = operation;
  return { action, position: logPosition(BigInt(position)), run: runId(BigInt(of)), payloadHash };
}

const NOT_ALLOWED = '42501';

async function heldIn(
  db: Queryable,
  snapshot: bigint,
  target: TargetId,
  identityHash: Sha256,
): Promise<Undated | null> {
  const query = `select sequence, since, encode(payload_hash, 'hex') as payload_hash from retl.snapshot_${snapshot}
    where target_id = $1 and identity_hash = $2`;
  // A refused statement would end the transaction.
  await run(db, 'savepoint held');
  let row: Row | undefined;
  try {
    [row] = await run(db, query, [target, hashBytes(identityHash)]);
  } catch (error) {
    if (!(error instanceof JournalError && error.sqlState === NOT_ALLOWED)) throw error;
    await run(db, 'rollback to savepoint held');
  }
  if (row === undefined) return null;
  return {
    action: 'held',
    position: logPosition(big(row, 'since')),
    run: big(row, 'sequence') >> 32n,
    payloadHash: sha256FromHex(text(row, 'payload_hash')),
  };
}

const TIMES = 'select position, recorded_at from retl.log_entry where position = any($1::bigint[])';

async function timesOf(db: Queryable, changes: readonly Undated[]): Promise<ReadonlyMap<LogPosition, Date>> {
  if (changes.length === 0) return new Map();
  const rows = await run(db, TIMES, [changes.map(({ position }) => position)]);
  return new Map(rows.map((row) => [logPosition(big(row, 'position')), date(row, 'recorded_at')]));
}
