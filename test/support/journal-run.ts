/** A logical run played by hand, step by step, through the same functions that activities call. */

import { createHash, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { type BatchId, type RunId, type Sha256, sequence, sha256FromHex } from '../../src/domain/ids.ts';
import { batchId, operationId } from '../../src/domain/request.ts';
import {
  type BatchDraft,
  markSending,
  prepareBatches,
  prepareStep,
  type Rejection,
  settleBatch,
  settleStep,
} from '../../src/journal/batches.ts';
import { type CandidateSink, loadCandidate } from '../../src/journal/candidate.ts';
import { readOperations } from '../../src/journal/operations.ts';
import { loadRun, type RunRecord } from '../../src/journal/run-record.ts';
import {
  type AdmitRequest,
  type Attempt,
  admit,
  type Beforehand,
  beginAttempt,
  beginFinish,
  beginRemovals,
  fold,
  type GuardAnswer,
  type GuardResult,
  guard,
  type Holder,
  plan,
  promote,
  recordBaseline,
  type SealResult,
  seal,
} from '../../src/journal/runs.ts';

export type Action = 'upsert' | 'remove';

/** One row of a source: its key and the members that it gives; none means that it is excluded. */
export interface TestRow {
  readonly key: string;
  readonly members: readonly TestMember[];
}

export interface TestMember {
  readonly id: string;
  readonly payload: string;
  /** `null`: the identity itself. */
  readonly remove?: string | null;
}

export const MAX_PAYLOAD = 10_000;
const DEADLINE_MS = 60_000;

export function sha(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

export function shaHex(text: string): string {
  return sha(text).toString('hex');
}

/** An id that is a JSON object is the whole identity, in its canonical form. */
export function identityOf(id: string): string {
  return id.startsWith('{') ? id : JSON.stringify({ id });
}

export function upsertOf(m: TestMember): string {
  return JSON.stringify({ id: m.id, v: m.payload });
}

export function identityHash(id: string): Buffer {
  return sha(identityOf(id));
}

/** Rows of one member each, with the key of the member. */
export function rowsOf(members: Readonly<Record<string, string>>): readonly TestRow[] {
  return Object.entries(members).map(([id, payload]) => ({ key: id, members: [{ id, payload }] }));
}

export function holderNamed(workflowId: string): Holder {
  return { namespace: 'test', cluster: 'c1', workflowId, firstRunId: randomUUID() };
}

export function targetOf(mirror: string): string {
  return `target of ${mirror}`;
}

export function admission(overrides: Partial<AdmitRequest> & { readonly mirror: string }): AdmitRequest {
  const settings = overrides.settings ?? `{"mirror":"${overrides.mirror}"}`;
  return {
    strategy: 'snapshot-diff',
    targetKey: targetOf(overrides.mirror),
    settings,
    settingsDigest: sha(settings),
    maxRemovalShare: null,
    maxRemovals: null,
    emptySnapshot: 'allow',
    approvalDeadlineMs: 86_400_000,
    maxBatchRows: 1000,
    maxRequestBytes: 1_000_000,
    mayResend: false,
    holder: holderNamed(`mirror/${overrides.mirror}`),
    closedHolder: null,
    resumeAfter: new Date(0),
    ...overrides,
  };
}

export interface Prepared {
  readonly id: BatchId;
  readonly action: Action;
  readonly first: bigint;
  readonly last: bigint;
  /** The members' ids, in order. */
  readonly members: readonly string[];
}

export class ScriptedRun {
  private constructor(
    readonly db: pg.Pool,
    readonly request: AdmitRequest,
    readonly run: RunId,
    public attempt: Attempt,
  ) {}

  /** Admits a fresh run, or takes over what there is, and begins an attempt. */
  static async open(
    db: pg.Pool,
    overrides: Partial<AdmitRequest> & { readonly mirror: string },
  ): Promise<ScriptedRun> {
    const request = admission(overrides);
    const answer = await admit(db, request);
    if (answer.kind !== 'admitted') throw new Error(`not admitted: ${JSON.stringify(answer)}`);
    const attempt = await beginAttempt(db, answer.run, request.holder, 'test');
    return new ScriptedRun(db, request, answer.run, attempt);
  }

  /** A newer attempt; the former one is fenced. */
  async again(): Promise<Attempt> {
    this.attempt = await beginAttempt(this.db, this.run, this.request.holder, 'test');
    return this.attempt;
  }

  record(): Promise<RunRecord> {
    return loadRun(this.db, this.run);
  }

  async init(): Promise<void> {
    const baseline = this.request.strategy === 'native-replace' ? 'replace' : 'new-empty';
    await recordBaseline(this.db, this.attempt, baseline, 'verified', null);
    await this.step('init');
  }

  async step(action: 'init' | 'finish'): Promise<BatchId> {
    const id = await this.prepareStep(action);
    await markSending(this.db, this.attempt, id, DEADLINE_MS);
    await settleStep(this.db, this.attempt, id, '{}', new Map());
    return id;
  }

  async prepareStep(action: 'init' | 'finish', ordinal = 1): Promise<BatchId> {
    const { logId, mirror } = await this.record();
    const key = { mirror: `${logId}/${mirror}`, run: this.run, action, operations: [], ordinal };
    const id = batchId(key, shaHex);
    await prepareStep(this.db, this.attempt, action, id, sha256FromHex(shaHex('null')), 4);
    return id;
  }

  async load(rows: readonly TestRow[], keyTypes = '["text"]'): Promise<void> {
    await loadCandidate(this.db, this.attempt, keyTypes, async (sink) => {
      for (const row of rows) {
        addRow(sink, row);
        await sink.drain();
      }
    });
  }

  seal(maxUpsert = MAX_PAYLOAD, maxRemove = MAX_PAYLOAD): Promise<SealResult> {
    return seal(this.db, this.attempt, maxUpsert, maxRemove);
  }

  async foldAll(batches = 100): Promise<void> {
    while ((await fold(this.db, this.attempt, batches)) > 0);
  }

  async plan(said: Beforehand = {}): Promise<GuardResult> {
    await this.foldAll();
    await plan(this.db, this.attempt);
    return guard(this.db, this.attempt, said);
  }

  /** As far as the additions: session open, rows sealed and planned. */
  async upToAdditions(rows: readonly TestRow[]): Promise<void> {
    if ((await this.record()).phase === 'init') await this.init();
    await this.load(rows);
    const sealed = await this.seal();
    if (sealed.kind !== 'sealed') throw new Error(`not sealed: ${sealed.code}`);
    const passed = await this.plan();
    if (passed.kind !== 'passed') throw new Error(`not passed: ${JSON.stringify(passed)}`);
  }

  /** Prepares the next batches of an action: at most `count`, of `size` operations each. */
  async prepare(action: Action, size: number, count = Number.MAX_SAFE_INTEGER): Promise<readonly Prepared[]> {
    const drafts = await this.drafts(action, size, count);
    if (drafts.length > 0) {
      await prepareBatches(
        this.db,
        this.attempt,
        action,
        drafts.map((d) => d.draft),
      );
    }
    return drafts.map((d) => d.prepared);
  }

  async drafts(action: Action, size: number, count = Number.MAX_SAFE_INTEGER) {
    const record = await this.record();
    const end = (action === 'upsert' ? record.additionsEnd : record.removalsEnd) ?? 0n;
    const start = (action === 'upsert' ? record.firstSequence : (record.additionsEnd ?? 0n) + 1n) ?? 1n;
    const { rows } = await this.db.query<{ next: string | null }>(
      'select max(upper(operations)) as next from retl.batch where run_id = $1 and action = $2',
      [this.run, action],
    );
    const drafts: { draft: BatchDraft; prepared: Prepared }[] = [];
    let first = BigInt(rows[0]?.next ?? start);
    while (first <= end && drafts.length < count) {
      const last = first + BigInt(size) - 1n < end ? first + BigInt(size) - 1n : end;
      drafts.push(await this.draft(record, action, first, last, 1));
      first = last + 1n;
    }
    return drafts;
  }

  async draft(record: RunRecord, action: Action, first: bigint, last: bigint, ordinal: number) {
    const operations = await readOperations(this.db, record, action, first, last);
    const mirror = `${record.logId}/${record.mirror}`;
    const { run, revision, target } = record;
    const ids = operations.map((op) =>
      operationId(
        {
          mirror,
          run,
          revision,
          target,
          action,
          identityHash: named(op.identityHash),
          payloadHash: op.payloadHash === null ? null : named(op.payloadHash),
          removalHash: op.removalHash === null ? null : named(op.removalHash),
          ordinal,
        },
        shaHex,
      ),
    );
    const id = batchId({ mirror, run, action, operations: ids, ordinal }, shaHex);
    const body = operations.map((op) => op.payload).join(',');
    const draft: BatchDraft = {
      id,
      last: sequence(last),
      requestHash: sha256FromHex(shaHex(body)),
      requestBytes: Buffer.byteLength(body),
    };
    const members = operations.map((op) => String(JSON.parse(op.identity).id));
    return { draft, prepared: { id, action, first, last, members } };
  }

  sending(id: BatchId, deadlineMs = DEADLINE_MS): Promise<void> {
    return markSending(this.db, this.attempt, id, deadlineMs);
  }

  /** Settles a batch; members named in `reject` are rejected. */
  async settle(batch: Prepared, reject: ReadonlySet<string> = new Set()): Promise<void> {
    const rejections: Rejection[] = batch.members.flatMap((id, i) =>
      reject.has(id)
        ? [{ sequence: sequence(batch.first + BigInt(i)), code: 'refused-row', reason: `no ${id}` }]
        : [],
    );
    await settleBatch(this.db, this.attempt, batch.id, '{"ok":true}', rejections, new Map());
  }

  /** Delivers everything that an action has, or `count` batches of it. */
  async deliver(
    action: Action,
    options: { size?: number; count?: number; reject?: ReadonlySet<string> } = {},
  ): Promise<readonly Prepared[]> {
    const batches = await this.prepare(action, options.size ?? 1000, options.count);
    for (const batch of batches) {
      await this.sending(batch.id);
      await this.settle(batch, options.reject);
    }
    return batches;
  }

  async beginRemovals(): Promise<GuardAnswer | null> {
    return beginRemovals(this.db, this.attempt, MAX_PAYLOAD);
  }

  async beginFinish(): Promise<GuardAnswer | null> {
    return beginFinish(this.db, this.attempt);
  }

  /** From the additions to the end. */
  async complete(size = 1000): Promise<void> {
    await this.deliver('upsert', { size });
    await this.beginRemovals();
    await this.deliver('remove', { size });
    await this.beginFinish();
    await this.step('finish');
    await this.foldAll();
    await promote(this.db, this.attempt);
  }

  /** A whole run of these rows. */
  static async whole(
    db: pg.Pool,
    overrides: Partial<AdmitRequest> & { readonly mirror: string },
    rows: readonly TestRow[],
    size = 1000,
  ): Promise<ScriptedRun> {
    const run = await ScriptedRun.open(db, overrides);
    await run.upToAdditions(rows);
    await run.complete(size);
    return run;
  }
}

export function addRow(sink: CandidateSink, row: TestRow): void {
  const key = JSON.stringify([row.key]);
  if (row.members.length === 0) sink.addExcluded(key);
  row.members.forEach((m, n) => {
    const identity = identityOf(m.id);
    const upsert = upsertOf(m);
    sink.addMember(key, n, {
      identityHash: sha(identity).toString('latin1'),
      payloadHash: sha(upsert).toString('latin1'),
      removalHash: m.remove === undefined || m.remove === null ? null : sha(m.remove).toString('latin1'),
      identity,
      upsert,
      remove: m.remove ?? null,
    });
  });
}

function named(bytes: Buffer): Sha256 {
  return sha256FromHex(bytes.toString('hex'));
}
