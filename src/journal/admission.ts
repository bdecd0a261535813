/** Admission of a run, and who holds it; migrations/0002 decides (retl.admit). */

import { type RunId, runId } from '../domain/ids.ts';
import type { RejectionSettings } from '../domain/settings.ts';
import { object, type Row, text } from './decode.ts';
import { call, type Queryable } from './pool.ts';

/** Who holds a run, in Temporal's terms. */
export interface Holder {
  readonly namespace: string;
  /** Id of the Temporal cluster; `''` where it could not be asked. */
  readonly cluster: string;
  readonly workflowId: string;
  /** First run id of the chain of executions, kept across continue-as-new. */
  readonly firstRunId: string;
}

/** SHA-256 each of what decides where requests arrive, besides the target's key (`Route` of the destinations' port). */
export interface RouteHashes {
  readonly credentials: Buffer;
  readonly removals: Buffer;
}

export interface AdmitRequest {
  readonly mirror: string;
  readonly strategy: 'snapshot-diff' | 'native-replace';
  readonly targetKey: string;
  /** Canonical text of the settings, and its SHA-256. */
  readonly settings: string;
  readonly settingsDigest: Buffer;
  readonly maxRemovalShare: number | null;
  readonly maxRemovals: number | null;
  readonly emptySnapshot: 'hold' | 'allow';
  /** Ms that the run waits for an answer once it is parked. */
  readonly approvalDeadlineMs: number;
  readonly maxBatchRows: number;
  readonly maxRequestBytes: number;
  /** Whether an unknown request may go again with the same bytes and key: the adapter is idempotent (rule 3). */
  readonly mayResend: boolean;
  /** Whether what is said of each operation of its last copy holds for all copies; absent: it does not. */
  readonly lastCopyDecides?: boolean;
  readonly holder: Holder;
  /** First run id of a holder that Temporal says is closed; `null` where nobody was asked. */
  readonly closedHolder: string | null;
  /** Generations sealed before this are not resumed. */
  readonly resumeAfter: Date;
  /** Whether an accepted upload becomes true with the finish only; absent: it does not. */
  readonly atFinish?: boolean;
  /** Rule 5: whether rejections stop the run, and how many it tolerates; absent: they do. */
  readonly onRejection?: RejectionSettings;
  /** Ms after its last acceptance that an unchanged member is sent again; absent or `null`: never. */
  readonly refreshAfterMs?: number | null;
  /** Whether the target's members must have been imported before its first run; absent: no. */
  readonly tracked?: boolean;
  /** Absent or `null`: the target's key says all of it. */
  readonly route?: RouteHashes | null;
  /** Keys of targets that its removals would go into; absent: none but its own. */
  readonly removesFrom?: readonly string[];
  /** The adapter's word for what an identity means at the target; absent or empty: identities speak for themselves. */
  readonly identityForm?: string;
}

export type Admission =
  | { readonly kind: 'admitted'; readonly run: RunId; readonly resume: Resume }
  | { readonly kind: 'busy'; readonly holder: Holder }
  /** The mirror keeps another strategy. */
  | { readonly kind: 'refused'; readonly code: 'strategy-changed'; readonly strategy: string }
  /** The target belongs to another mirror. */
  | { readonly kind: 'refused'; readonly code: 'target-owned'; readonly owner: string }
  /** Its removals would go into a target of another mirror. */
  | { readonly kind: 'refused'; readonly code: 'removes-elsewhere'; readonly owner: string }
  /** Nobody has imported what the target holds. */
  | { readonly kind: 'refused'; readonly code: 'baseline-missing' }
  /** What the target holds was accepted under another {@link AdmitRequest.identityForm}. */
  | { readonly kind: 'refused'; readonly code: 'identity-moved' };

/** `fresh`: a new run; `held`: the caller's own; `sealed`: to be continued; the others are to be closed first. */
export type Resume = 'fresh' | 'held' | 'sealed' | 'discard' | 'expired' | 'guard-rejected' | 'guard-expired';

/** @throws JournalError */
export async function admit(db: Queryable, r: AdmitRequest): Promise<Admission> {
  const limits = r.onRejection ?? { kind: 'stop' };
  const tolerated = limits.kind === 'tolerate' ? limits : null;
  const answer = object(
    await call(db, `retl.admit(${Array.from({ length: 29 }, (_, n) => `$${n + 1}`).join(',')})`, [
      r.mirror,
      r.strategy,
      r.targetKey,
      r.settings,
      r.settingsDigest,
      r.maxRemovalShare,
      r.maxRemovals,
      r.emptySnapshot,
      r.approvalDeadlineMs,
      r.maxBatchRows,
      r.maxRequestBytes,
      r.mayResend,
      r.holder.namespace,
      r.holder.cluster,
      r.holder.workflowId,
      r.holder.firstRunId,
      r.closedHolder,
      r.resumeAfter,
      r.atFinish ?? false,
      limits.kind,
      tolerated?.max ?? null,
      tolerated?.maxShare ?? null,
      r.refreshAfterMs ?? null,
      r.tracked ?? false,
      r.lastCopyDecides ?? false,
      r.route?.credentials ?? null,
      r.route?.removals ?? null,
      r.identityForm || null,
      r.removesFrom ?? [],
    ]),
  );
  switch (answer.kind) {
    case 'admitted':
      return {
        kind: 'admitted',
        run: runId(text(answer, 'run')),
        resume: resumeKind(text(answer, 'resume')),
      };
    case 'busy':
      return {
        kind: 'busy',
        holder: {
          namespace: text(answer, 'namespace'),
          cluster: text(answer, 'cluster'),
          workflowId: text(answer, 'workflow'),
          firstRunId: text(answer, 'first_run'),
        },
      };
    default:
      return refusal(answer);
  }
}

function refusal(answer: Row): Extract<Admission, { kind: 'refused' }> {
  switch (answer.code) {
    case 'target-owned':
    case 'removes-elsewhere':
      return { kind: 'refused', code: answer.code, owner: text(answer, 'owner') };
    case 'baseline-missing':
    case 'identity-moved':
      return { kind: 'refused', code: answer.code };
    default:
      return { kind: 'refused', code: 'strategy-changed', strategy: text(answer, 'strategy') };
  }
}

function resumeKind(word: string): Resume {
  return word as Resume;
}
