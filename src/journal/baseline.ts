/**
 * Baselines that are told before a run (design.md section 4, "Strategies"; migrations/0009). An imported one: members that a
 * target held before the journal knew of it, as a run that sends nothing; opening and accepting belong into one transaction,
 * with the loading between them. An attested one: an operator's word that there is nothing.
 */

import { type BatchId, type Epoch, epoch, type RunId, runId, type Sequence } from '../domain/ids.ts';
import type { RouteHashes } from './admission.ts';
import { hashBytes } from './batches.ts';
import { object, text, textOrNull } from './decode.ts';
import { call, type Queryable } from './pool.ts';
import type { Attempt } from './runs.ts';
import { safeText } from './safe-text.ts';

export interface ImportRequest {
  readonly mirror: string;
  readonly targetKey: string;
  /** As of an admission. */
  readonly route?: RouteHashes | null;
  /** Canonical text of the settings, and its SHA-256. */
  readonly settings: string;
  readonly settingsDigest: Buffer;
  readonly maxBatchRows: number;
  readonly maxRequestBytes: number;
  /** Who imports, and why; kept for `retl_reader` only. Neither may be empty. */
  readonly by: string;
  readonly because: string;
  /** By the destination itself, and not by a person's file. */
  readonly listed: boolean;
  /** As that of a run that is admitted. */
  readonly identityForm?: string;
}

export type OpenedImport =
  | { readonly kind: 'opened'; readonly run: RunId; readonly epoch: Epoch }
  /** The caller rolls back. */
  | {
      readonly kind: 'refused';
      readonly code: ImportRefusal;
      /** The mirror that the target belongs to, or the strategy that the mirror keeps, where it is that. */
      readonly other: string | null;
    };

export type ImportRefusal =
  | 'strategy-changed'
  | 'target-owned'
  | 'identity-moved'
  | 'open-run'
  | 'baseline-known';

const LONGEST_NAME = 200;

/** @throws JournalError */
export async function openImport(db: Queryable, r: ImportRequest): Promise<OpenedImport> {
  const answer = object(
    await call(db, 'retl.open_import($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12)', [
      r.mirror,
      r.targetKey,
      r.settings,
      r.settingsDigest,
      r.maxBatchRows,
      r.maxRequestBytes,
      safeText(r.by.slice(0, LONGEST_NAME)),
      safeText(r.because),
      r.listed,
      r.route?.credentials ?? null,
      r.route?.removals ?? null,
      r.identityForm || null,
    ]),
  );
  if (answer.kind === 'opened')
    return { kind: 'opened', run: runId(text(answer, 'run')), epoch: epoch(text(answer, 'epoch')) };
  const other = textOrNull(answer, 'owner') ?? textOrNull(answer, 'strategy');
  return { kind: 'refused', code: text(answer, 'code') as ImportRefusal, other };
}

/** Members that were imported together: where they end among the planned ones, and the id that names them in the log. */
export interface ImportedBatch {
  readonly id: BatchId;
  readonly last: Sequence;
}

/** Makes all of them true and closes the run; each batch begins where the one before ended. @throws JournalError */
export async function acceptImport(
  db: Queryable,
  a: Attempt,
  batches: readonly ImportedBatch[],
): Promise<void> {
  await call(db, 'retl.accept_import($1,$2,$3,$4)', [
    a.run,
    a.epoch,
    batches.map((b) => hashBytes(b.id)),
    batches.map((b) => b.last),
  ]);
}

export interface Attestation {
  readonly mirror: string;
  readonly targetKey: string;
  /** As those of {@link ImportRequest}. */
  readonly by: string;
  readonly because: string;
}

export type Attested =
  | { readonly kind: 'attested' }
  /** `other` as in {@link OpenedImport}. */
  | {
      readonly kind: 'refused';
      readonly code: Exclude<ImportRefusal, 'open-run' | 'identity-moved'>;
      readonly other: string | null;
    };

/** An operator's word that a target is new and empty; of this target alone. The caller rolls a refusal back. @throws JournalError */
export async function attestEmpty(db: Queryable, a: Attestation): Promise<Attested> {
  const words = [safeText(a.by.slice(0, LONGEST_NAME)), safeText(a.because)];
  const answer = object(await call(db, 'retl.attest_empty($1,$2,$3,$4)', [a.mirror, a.targetKey, ...words]));
  if (answer.kind === 'attested') return { kind: 'attested' };
  const other = textOrNull(answer, 'owner') ?? textOrNull(answer, 'strategy');
  return {
    kind: 'refused',
    code: text(answer, 'code') as Exclude<ImportRefusal, 'open-run' | 'identity-moved'>,
    other,
  };
}
