/**
 * The values of one member's story, for those who may read them (role retl_reader): identity, payloads, receipts and the
 * words of providers and operators. Nothing of this is ever part of an error.
 */

import { type RunId, runId, type Sha256 } from '../domain/ids.ts';
import type { RunStory } from '../domain/member-story.ts';
import { hashBytes } from './batches.ts';
import { text, textOrNull, texts } from './decode.ts';
import { operationRows, operationsOf } from './log.ts';
import type { Holding } from './member-trace.ts';
import { type Queryable, run } from './pool.ts';

export interface OperationValues {
  readonly runId: string;
  /** Canonical JSON of what the operation sends; of this and what else is held, `null`: the journal has lost it. */
  readonly payload: string | null;
  /** The provider's words where it rejected the operation. */
  readonly rejection: string | null;
  readonly batches: readonly BatchValues[];
}

export interface BatchValues {
  readonly batch: string;
  /** The provider's answer, JSON. */
  readonly receipt: string | null;
  /** The provider's words about a request that it refused. */
  readonly refusal: string | null;
  readonly jobIds: readonly string[];
  /** An operator's reason, where one decided the outcome. */
  readonly because: string | null;
}

export interface MemberValues {
  /** Canonical JSON; `null` where no row that is left has it. */
  readonly identity: string | null;
  /** The payload that was accepted last, and what its removal would send; `null` where it is not held. */
  readonly held: { readonly payload: string | null; readonly removal: string | null } | null;
  /** Of the page's runs. */
  readonly operations: readonly OperationValues[];
  /** What the newest snapshot whose rows are there gives it: source key and payload. */
  readonly desired: {
    readonly runId: string;
    readonly sourceKey: string;
    readonly payload: string | null;
  } | null;
}

/** @throws JournalError */
export async function valuesOf(
  db: Queryable,
  identityHash: Sha256,
  held: Holding | null,
  stories: readonly RunStory[],
): Promise<MemberValues> {
  const holding = held === null ? null : await bytesOf(db, runId(held.runId), held.sequence, 'upsert');
  const desired = await desiredOf(db, identityHash, stories);
  const operations: OperationValues[] = [];
  let identity = holding?.identity ?? desired?.identity ?? null;
  for (const { runId: number, operation } of stories) {
    if (operation === null) continue;
    const action = operation.change === 'remove' ? 'remove' : 'upsert';
    const bytes = await bytesOf(db, runId(number), operation.sequence, action);
    if (bytes === null) continue;
    identity ??= bytes.identity;
    operations.push({
      runId: number,
      payload: bytes.payload,
      rejection: await rejectionWords(db, operation.sequence),
      batches: await batchValues(
        db,
        operation.batches.map((batch) => batch.id),
      ),
    });
  }
  return {
    identity,
    held: holding === null ? null : { payload: holding.payload, removal: holding.removal },
    operations,
    desired:
      desired === null
        ? null
        : { runId: desired.runId, sourceKey: desired.sourceKey, payload: desired.payload },
  };
}

interface Bytes {
  readonly identity: string | null;
  readonly payload: string | null;
  readonly removal: string | null;
}

async function bytesOf(
  db: Queryable,
  of: RunId,
  sequence: string,
  action: 'upsert' | 'remove',
): Promise<Bytes | null> {
  const query = operationsOf(await operationRows(db, of), action, 'o.sequence = $1');
  const [row] = await run(db, query, [sequence]);
  if (row === undefined) return null;
  return {
    identity: textOrNull(row, 'identity'),
    payload: textOrNull(row, 'payload'),
    removal: textOrNull(row, 'removal'),
  };
}

async function desiredOf(db: Queryable, identityHash: Sha256, stories: readonly RunStory[]) {
  const newest = stories.find((story) => story.desiredHash !== null);
  if (newest === undefined) return null;
  const { generation } = await operationRows(db, runId(newest.runId));
  const query = `select source_key, identity, upsert from retl.generation_${generation}
    where kind = 1 and identity_hash = $1`;
  const [row] = await run(db, query, [hashBytes(identityHash)]);
  if (row === undefined) return null;
  return {
    runId: newest.runId,
    sourceKey: text(row, 'source_key'),
    identity: textOrNull(row, 'identity'),
    payload: textOrNull(row, 'upsert'),
  };
}

async function rejectionWords(db: Queryable, sequence: string): Promise<string | null> {
  const [row] = await run(db, 'select reason from retl.rejection where sequence = $1', [sequence]);
  return row === undefined ? null : text(row, 'reason');
}

const BATCH_VALUES = `
  select encode(batch_id, 'hex') as batch_id, receipt, refusal, coalesce(job_ids, '{}') as job_ids, resolved_because
  from retl.batch where batch_id = any($1) order by sending, prepared_at`;

async function batchValues(db: Queryable, batches: readonly Sha256[]): Promise<readonly BatchValues[]> {
  if (batches.length === 0) return [];
  return (await run(db, BATCH_VALUES, [batches.map(hashBytes)])).map((row) => ({
    batch: `sha256:${text(row, 'batch_id')}`,
    receipt: textOrNull(row, 'receipt'),
    refusal: textOrNull(row, 'refusal'),
    jobIds: texts(row, 'job_ids'),
    because: textOrNull(row, 'resolved_because'),
  }));
}
