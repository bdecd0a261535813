/**
 * Requests on their way out: operations read by ranges, each proven to be the member that was stored, and cut by rows and exact
 * bytes into batches (rule 2: what is journaled is a recipe over sealed rows, and the hash that proves the rebuilt bytes the same).
 */

import type { BatchRequest } from '../../destinations/port.ts';
import { type OperationId, type Sequence, type Sha256, sequence, sha256FromHex } from '../../domain/ids.ts';
import {
  type Action,
  batchId,
  buildBody,
  cutBatch,
  type Operation,
  operationId,
  type RequestFrame,
} from '../../domain/request.ts';
import type { BatchRecord } from '../../journal/batch-record.ts';
import type { BatchDraft } from '../../journal/batches.ts';
import { type OperationHashes, readOperations, type StoredOperation } from '../../journal/operations.ts';
import type { RunRecord } from '../../journal/run-record.ts';
import { sha256Hex } from '../../planning/hash.ts';
import type { OpenWriter, RunAttempt } from '../attempt.ts';

/** A batch in memory, journaled or about to be. */
export interface Outgoing {
  readonly draft: BatchDraft;
  readonly first: Sequence;
  readonly sending: number;
  /** Whether these bytes go, or went, a second time: an answer may then be about another copy than the first (rule 3). */
  readonly resent: boolean;
  readonly request: BatchRequest;
}

/** The id that a planned operation of a run has when it is sent for the `sending`th time. */
export function operationIdIn(
  record: RunRecord,
  action: Action,
  planned: OperationHashes,
  sending: number,
): OperationId {
  return operationId(
    {
      mirror: `${record.logId}/${record.mirror}`,
      run: record.run,
      revision: record.revision,
      target: record.target,
      action,
      identityHash: named(planned.identityHash),
      payloadHash: namedOrNull(planned.payloadHash),
      removalHash: namedOrNull(planned.removalHash),
      ordinal: sending,
    },
    sha256Hex,
  );
}

/** Builds requests of one action of one run. */
export class RequestBuilder {
  readonly frame: RequestFrame;
  readonly #mirror: string;

  constructor(
    private readonly a: RunAttempt,
    private readonly w: OpenWriter,
    readonly action: Action,
  ) {
    this.frame = w.destination.adapter.frame(action, w.destination.options);
    this.#mirror = `${a.record.logId}/${a.record.mirror}`;
  }

  /** The operation with the id it has when it is sent for the `sending`th time in this run. */
  operation(stored: StoredOperation, sending: number): Operation {
    const id = operationIdIn(this.a.record, this.action, stored, sending);
    return { id, identity: stored.identity, payload: stored.payload };
  }

  /** One batch of these operations, which follow one another from `first`. */
  build(operations: readonly Operation[], first: bigint, sending: number): Outgoing {
    const id = batchId(
      {
        mirror: this.#mirror,
        run: this.a.record.run,
        action: this.action,
        operations: operations.map((op) => op.id),
        ordinal: sending,
      },
      sha256Hex,
    );
    const body = buildBody(this.frame, operations);
    const last = sequence(first + BigInt(operations.length) - 1n);
    return {
      draft: {
        id,
        last,
        requestHash: sha256FromHex(sha256Hex(body)),
        requestBytes: Buffer.byteLength(body),
      },
      first: sequence(first),
      sending,
      resent: false,
      request: { batchId: id, action: this.action, idempotencyKey: id, operations, body },
    };
  }

  /**
   * Cuts as many batches as the operations fill; the last may be short only where `atEnd`.
   * @returns the batches, and how many operations they take.
   */
  cut(
    operations: readonly Operation[],
    first: bigint,
    sending: number,
    atEnd: boolean,
  ): { readonly batches: readonly Outgoing[]; readonly taken: number } {
    const { rows, bytes } = this.w.destination.limits;
    const batches: Outgoing[] = [];
    let taken = 0;
    while (taken < operations.length) {
      const cut = cutBatch(this.frame, operations, { rows, bytes }, taken);
      const full = cut.end < operations.length || cut.end - taken === rows;
      if (!full && !atEnd) break;
      batches.push(this.build(operations.slice(taken, cut.end), first + BigInt(taken), sending));
      taken = cut.end;
    }
    return { batches, taken };
  }

  /** A journaled batch, rebuilt from its rows. @throws Error where the bytes are not those that were journaled. */
  async rebuild(batch: BatchRecord): Promise<Outgoing> {
    const operations = await this.operationsOf(batch, batch.sending);
    const built = this.build(operations, batch.first ?? 0n, batch.sending);
    if (built.draft.id !== batch.id || built.draft.requestHash !== batch.requestHash) {
      throw new Error('rule 2: the rebuilt request is not the one that was journaled');
    }
    return { ...built, resent: batch.resends > 0 };
  }

  /** The operations of a journaled batch, with the ids of their `sending`th sending. */
  async operationsOf(
    batch: Pick<BatchRecord, 'first' | 'last'>,
    sending: number,
  ): Promise<readonly Operation[]> {
    if (batch.first === null || batch.last === null) throw new Error('a step has no operations');
    const rows = await readOperations(
      this.a.deps.journal,
      this.a.record,
      this.action,
      batch.first,
      batch.last,
    );
    return rows.map((row) => this.operation(row, sending));
  }

  /** What replaces a batch that was proven not applied: the same operations again, in halves where that may help. */
  async again(
    batch: Pick<BatchRecord, 'first' | 'last' | 'sending'>,
    halve: boolean,
  ): Promise<readonly Outgoing[]> {
    const sending = batch.sending + 1;
    const operations = await this.operationsOf(batch, sending);
    const first = batch.first ?? 0n;
    const middle = halve ? Math.ceil(operations.length / 2) : operations.length;
    const pieces = [operations.slice(0, middle), operations.slice(middle)].filter((p) => p.length > 0);
    return pieces.map((piece, i) => this.build(piece, i === 0 ? first : first + BigInt(middle), sending));
  }
}

function namedOrNull(bytes: Buffer | null): Sha256 | null {
  return bytes === null ? null : named(bytes);
}

function named(bytes: Buffer): Sha256 {
  return sha256FromHex(bytes.toString('hex'));
}
