/**
 * Admits a workflow execution to its mirror: a new run, its own, or one whose holder is closed (design.md section 4, "Who
 * holds a run"). A newcomer is refused while Temporal says that the holder is open, or cannot be asked.
 */

import { Context, getClient } from '@temporalio/activity';
import { RetlError } from '../domain/errors.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import { countRun, journalNow, loadRun } from '../journal/run-record.ts';
import { type Admission, type AdmitRequest, admit, type Holder } from '../journal/runs.ts';
import { holderOf } from './attempt.ts';
import { bindDestination, sha256Bytes } from './binding.ts';
import { busy } from './busy.ts';
import type { Dependencies } from './deps.ts';
import type { AdmitArgs, AdmitResult } from './results.ts';

/** @throws RetlError (configuration), JournalError */
export async function admitRun(deps: Dependencies, args: AdmitArgs): Promise<AdmitResult> {
  const holder = holderOf(deps, args.firstRunId);
  let admission = await tryAdmit(deps, args.mirror, holder, null);
  if (admission.kind === 'busy') {
    const state = await askTemporal(deps, holder, admission.holder);
    if (state !== 'closed') return refused(deps, await busy(deps, args.mirror, admission.holder, state));
    admission = await tryAdmit(deps, args.mirror, holder, admission.holder.firstRunId);
  }
  switch (admission.kind) {
    case 'busy':
      return refused(deps, await busy(deps, args.mirror, admission.holder, 'open'));
    case 'refused':
      return refused(deps, notAdmitted(args.mirror, admission));
    default: {
      const record = await loadRun(deps.journal, admission.run);
      return {
        kind: 'admitted',
        run: admission.run.toString(),
        resume: admission.resume,
        phase: record.phase,
        unresolved: record.unresolved,
        counts: await countRun(deps.journal, admission.run),
        searchAttributes: deps.searchAttributes,
      };
    }
  }
}

/** Foreseen, and in the words of every error: what it means, whom it is about, what to do. */
function refused({ searchAttributes }: Dependencies, { code, message }: RetlError): AdmitResult {
  return { kind: 'refused', code, message, searchAttributes };
}

function notAdmitted(mirror: string, refusal: Extract<Admission, { kind: 'refused' }>): RetlError {
  switch (refusal.code) {
    case 'target-owned':
      return new RetlError('run.target-owned', { mirror, owner: refusal.owner });
    case 'removes-elsewhere':
      return new RetlError('run.removes-elsewhere', { mirror, owner: refusal.owner });
    case 'baseline-missing':
      return new RetlError('run.baseline-missing', { mirror });
    case 'identity-moved':
      return new RetlError('run.identity-moved', { mirror });
    case 'strategy-changed':
      return new RetlError('run.strategy-changed', { mirror, 'its strategy': refusal.strategy });
  }
}

async function tryAdmit(
  deps: Dependencies,
  mirror: string,
  holder: Holder,
  closedHolder: string | null,
): Promise<Admission> {
  const settings = await deps.configuration.mirror(mirror);
  const asked = settledBy(deps, settings);
  const now = await journalNow(deps.journal);
  const resumeAfter = new Date(now.getTime() - settings.resumeMaxAgeMs);
  return admit(deps.journal, { mirror, ...asked, holder, closedHolder, resumeAfter });
}

/** What a run is admitted with, as far as the mirror's settings say it. @throws RetlError */
export function settledBy(
  deps: Pick<Dependencies, 'destinations' | 'configuration'>,
  settings: MirrorSettings,
): Omit<AdmitRequest, 'mirror' | 'holder' | 'closedHolder' | 'resumeAfter'> {
  const destination = bindDestination(deps, settings);
  const text = deps.configuration.text(settings);
  return {
    strategy: settings.strategy,
    targetKey: destination.targetKey,
    route: destination.route,
    removesFrom: destination.removesFrom,
    settings: text,
    settingsDigest: sha256Bytes(text),
    maxRemovalShare: settings.safety.maxRemovalShare,
    maxRemovals: settings.safety.maxRemovals,
    emptySnapshot: settings.safety.emptySnapshot,
    approvalDeadlineMs: settings.safety.approvalDeadlineMs,
    maxBatchRows: destination.limits.rows,
    maxRequestBytes: destination.limits.bytes,
    mayResend: destination.capabilities.recovery === 'idempotent',
    lastCopyDecides: destination.capabilities.lastCopyDecides ?? false,
    atFinish: destination.capabilities.visible === 'at_finish',
    onRejection: settings.onRejection,
    refreshAfterMs: settings.refreshAfterMs,
    tracked: settings.baseline.kind === 'tracked',
    identityForm: destination.identityForm,
  };
}

/** Only an answer of the very cluster and namespace that the holder lives in says anything about it. */
export async function askTemporal(
  deps: Pick<Dependencies, 'cluster'>,
  me: Holder,
  holder: Holder,
): Promise<'open' | 'closed' | 'unknown'> {
  if (holder.namespace !== me.namespace || holder.cluster !== deps.cluster) return 'unknown';
  const { workflowService } = getClient();
  try {
    const newest = await workflowService.describeWorkflowExecution({
      namespace: holder.namespace,
      execution: { workflowId: holder.workflowId },
    });
    const { status, firstRunId } = newest.workflowExecutionInfo ?? {};
    return stateOfHolder(holder, { kind: 'found', status: status ?? 0, firstRunId: firstRunId ?? '' });
  } catch (error) {
    // A worker that stops cuts the question off: that is no answer to refuse a newcomer by.
    Context.current().cancellationSignal.throwIfAborted();
    return isNotFound(error) ? stateOfHolder(holder, { kind: 'not-found' }) : 'unknown';
  }
}

/** What Temporal says of the newest execution that has the holder's workflow id. */
export type Newest =
  | { readonly kind: 'found'; readonly status: number; readonly firstRunId: string }
  | { readonly kind: 'not-found' };

/** Completed, failed, cancelled, terminated, timed out. */
const CLOSED: ReadonlySet<number> = new Set([2, 3, 4, 5, 7]);

export function stateOfHolder(
  holder: Pick<Holder, 'cluster' | 'firstRunId'>,
  newest: Newest,
): 'open' | 'closed' | 'unknown' {
  // Of a cluster that does not tell its id, absence proves nothing: it may be another one.
  const absence = holder.cluster === '' ? 'unknown' : 'closed';
  if (newest.kind === 'not-found') return absence;
  // Another chain of executions has the id now: the holder's own has ended.
  if (newest.firstRunId !== '' && newest.firstRunId !== holder.firstRunId) return absence;
  // Not running is not closed: a paused execution, or a status of a later server, is open still.
  return CLOSED.has(newest.status) ? 'closed' : 'open';
}

/** gRPC's NOT_FOUND: in this cluster and namespace no execution has that id, so that none is open. */
const NOT_FOUND = 5;

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === NOT_FOUND;
}
