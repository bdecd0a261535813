/**
 * Makes a plan: what a run would do now, from the journal and one reading of the source. Nothing is written, no destination
 * is called, and no transaction of the journal stays open while the source is read.
 */

import { RetlError } from '../domain/errors.ts';
import { identityHashInput } from '../domain/folding.ts';
import {
  guardOf,
  type OpenRunPlan,
  type Plan,
  type PlanCounts,
  type PlanDigests,
  type PlanGuard,
  type PlanIdentities,
  type SnapshotPlan,
} from '../domain/plan.ts';
import { isSealed } from '../domain/run.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { RouteHashes } from '../journal/admission.ts';
import {
  acceptedBefore,
  acceptedValues,
  heldValues,
  longRemovals,
  readHeld,
} from '../journal/held-members.ts';
import { plannedMembers } from '../journal/planned-members.ts';
import { consistently, type Queryable } from '../journal/pool.ts';
import { removedHashes } from '../journal/removal-overlap.ts';
import type { JournalPool } from '../journal/runs.ts';
import { type OpenRun, type Standing, standingOf, vouchedElsewhere } from '../journal/standing.ts';
import type { SourceSnapshot } from '../sources/port.ts';
import {
  requireBaseline,
  requireIdentity,
  requireOwnRemovals,
  requireOwnTarget,
  requireStrategy,
} from './admissible.ts';
import { DesiredSet } from './desired-set.ts';
import { sha256Hex, shownDigest } from './hash.ts';
import { MemberTable } from './member-table.ts';
import { movedOf } from './moved.ts';
import { replacedBy } from './replaced.ts';
import { RowFailures } from './row-failures.ts';
import { compileRow, keyTypes, type LoadProjection, type MemberForm, rowReader } from './row-reader.ts';
import { ShownMembers, tellPlanned } from './shown-members.ts';

export interface PlanInput {
  readonly settings: MirrorSettings;
  /** Canonical text of the settings, as a revision keeps it. */
  readonly settingsText: string;
  readonly targetKey: string;
  readonly route: RouteHashes | null;
  readonly removesFrom: readonly string[];
  /** What identities mean at the target; empty: they speak for themselves. */
  readonly identityForm: string;
  readonly form: MemberForm;
  /** Bytes of one stored payload, at most. */
  readonly limits: { readonly upsert: number; readonly remove: number };
  readonly openSource: () => Promise<SourceSnapshot>;
  readonly projection: LoadProjection;
  /** The most members of each kind to show by their values; `null`: none. */
  readonly identities: number | null;
  /** Hears, now and then, how many rows have been read. */
  readonly onProgress: (rows: number) => void;
}

/** @throws RetlError `source.*`, `data.*`, `run.strategy-changed`, `run.target-owned`, `run.baseline-missing`, `run.identity-moved`; JournalError */
export async function makePlan(journal: JournalPool, input: PlanInput): Promise<Plan> {
  const { settings, targetKey } = input;
  const members = new MemberTable();
  const { standing, planned, isVouched } = await consistently(journal, async (db) => {
    const found = await standingOf(db, settings.mirror, targetKey);
    requireStrategy(found, settings);
    if (!comesFirst(found.openRun, settings)) {
      requireOwnTarget(found, settings);
      await requireOwnRemovals(db, settings, input.removesFrom);
      requireBaseline(found, settings);
      requireIdentity(found, settings, input.identityForm);
      if (found.target !== null) await readHeld(db, found.target.id, members);
      if (settings.refreshAfterMs !== null && settings.strategy === 'snapshot-diff') {
        const isStale = found.target && (await acceptedBefore(db, found.target.id, settings.refreshAfterMs));
        members.refreshWhere(isStale ?? (() => false));
      }
    }
    const isSpent = await vouchedElsewhere(db, settings.mirror, targetKey, settings.baseline);
    return {
      standing: found,
      planned: await plannedOf(db, found.openRun, input),
      isVouched: settings.baseline.attested !== null && !isSpent,
    };
  });
  const { maxRemovalShare, maxRemovals, emptySnapshot } = settings.safety;
  const base = {
    format: 1 as const,
    mirror: settings.mirror,
    strategy: settings.strategy,
    targetKey,
    target: targetStanding(standing),
    settingsDigest: `sha256:${sha256Hex(input.settingsText)}`,
    safety: { maxRemovalShare, maxRemovals, emptySnapshot },
    openRun: standing.openRun === null ? null : openRunPlan(standing.openRun, settings),
  };
  if (comesFirst(standing.openRun, settings))
    return { ...base, next: 'open-run', snapshot: null, identities: planned };
  const fresh = await planSnapshot(journal, input, standing, members, isVouched);
  return { ...base, next: 'fresh-snapshot', ...fresh };
}

/** The members of a run that goes on first: `null` where nobody asks for them, or it has compared nothing yet. */
async function plannedOf(
  db: Queryable,
  open: OpenRun | null,
  { settings, identities }: PlanInput,
): Promise<PlanIdentities | null> {
  if (open === null || identities === null || !comesFirst(open, settings)) return null;
  const found = await plannedMembers(db, open.run, identities);
  return found === null ? null : tellPlanned(identities, found);
}

/** Whether a run that is open goes on before the source is read anew. */
function comesFirst(open: OpenRun | null, settings: MirrorSettings): boolean {
  return open !== null && givenUp(open, settings) === null;
}

/** As retl.admit decides (migrations/0002). */
function givenUp({ phase, parked, sealedForMs }: OpenRun, settings: MirrorSettings): OpenRunPlan['givenUp'] {
  if (!isSealed(phase)) return 'unsealed';
  if (parked?.verdict === 'rejected') return 'guard-rejected';
  if (parked?.verdict === null && parked.leftMs <= 0) return 'guard-expired';
  // Rule 10: a finish that was started is resolved, however old the generation is.
  if (phase === 'finish' || phase === 'promote') return null;
  return sealedForMs !== null && sealedForMs > settings.resumeMaxAgeMs ? 'too-old' : null;
}

function targetStanding({ strategy, target }: Standing): Plan['target'] {
  if (target !== null) return 'known';
  return strategy === null ? 'never-run' : 'new-target';
}

function openRunPlan(open: OpenRun, settings: MirrorSettings): OpenRunPlan {
  const { run, phase, holder, released, reason, unresolvedBatches, members, planned } = open;
  const plan = isSealed(phase) ? { members, counts: planned, guard: guardOfOpen(open) } : null;
  return {
    runId: run.toString(),
    phase,
    holder,
    released,
    reason,
    unresolvedBatches,
    givenUp: givenUp(open, settings),
    plan,
  };
}

function guardOfOpen(open: OpenRun): PlanGuard | null {
  const { phase, parked, planned, safety } = open;
  if (parked !== null) return parked.verdict === 'approved' ? null : { kind: 'holds', code: parked.code };
  const replaced = open.replacesUnknown ? 'unknown' : 'known';
  return planned !== null && phase === 'guard' ? guardOf(planned, safety, replaced, open.moved) : null;
}

const REMOVED_AT_ONCE = 5_000;

interface Fresh {
  readonly snapshot: SnapshotPlan;
  readonly identities: PlanIdentities | null;
}

async function planSnapshot(
  journal: JournalPool,
  input: PlanInput,
  standing: Standing,
  members: MemberTable,
  isVouched: boolean,
): Promise<Fresh> {
  const { settings, limits } = input;
  const shown = input.identities === null ? null : new ShownMembers(input.identities);
  const sealLimits = {
    ...limits,
    keyTypes: standing.target?.keyTypes ?? null,
    removesEach: settings.strategy === 'snapshot-diff',
  };
  const wanted = new DesiredSet(members, sealLimits, shown);
  await readSource(input, wanted);
  if (members.counts.removed > 0 && settings.strategy === 'snapshot-diff') {
    await checkRemovals(journal, input, standing, members);
    await checkWanted(journal, input, members, wanted);
  }
  const { collapsed, ...changes } = members.counts;
  const counts: PlanCounts = {
    sourceRows: wanted.sourceRows,
    excluded: wanted.excluded,
    collapsed,
    members: changes.added + changes.changed + changes.unchanged,
    ...changes,
  };
  const snapshot: SnapshotPlan = {
    counts,
    removedShare: counts.held === 0 ? null : counts.removed / counts.held,
    guard: guardOf(
      counts,
      settings.safety,
      replacedBy(settings.strategy, standing.target, isVouched),
      counts.held > 0 ? movedOf(standing.target?.route ?? null, input.route) : null,
    ),
    digests: digestsOf(members),
  };
  return { snapshot, identities: shown === null ? null : await tellShown(journal, shown, members) };
}

function digestsOf(members: MemberTable): PlanDigests {
  const [generation, removals] = [members.generationDigest(), members.removalDigest()];
  const shown = shownDigest(generation, members.counts.removed, removals);
  return {
    shown: `sha256:${shown}`,
    generation: `sha256:${generation}`,
    removals: `sha256:${removals}`,
  };
}

/** The rows of one snapshot, and what the seal would say of them. */
async function readSource(input: PlanInput, wanted: DesiredSet): Promise<void> {
  const { settings, form } = input;
  const snapshot = await input.openSource();
  try {
    const map = await compileRow(settings, snapshot.columns, input.projection);
    const failures = new RowFailures();
    const add = rowReader(map, form, wanted, failures);
    for await (const page of snapshot.pages()) {
      for (const row of page) add(row);
      input.onProgress(wanted.sourceRows);
    }
    failures.throwIfAny();
    wanted.check(keyTypes(settings.source.key, snapshot.columns));
  } finally {
    await snapshot.close();
  }
}

/** Members that leave were measured by earlier seals, perhaps against a larger limit (retl.plan). */
async function checkRemovals(
  journal: JournalPool,
  { limits }: PlanInput,
  { target }: Standing,
  members: MemberTable,
): Promise<void> {
  if (target === null || target.longestRemoval <= limits.remove) return;
  const long = await consistently(journal, (db) => longRemovals(db, target.id, limits.remove));
  const count = long.filter(({ identity, sequence }) => members.heldBy(identity) === sequence).length;
  if (count > 0) throw new RetlError('data.operation-too-large', { count });
}

/** As the guard says of a run (journal/removal-overlap.ts), but for foldings of former runs. */
async function checkWanted(
  journal: JournalPool,
  { form }: PlanInput,
  members: MemberTable,
  wanted: DesiredSet,
): Promise<void> {
  const fold = identityHashInput(form.identityFolding);
  const removed = members.heldSequences();
  let count = 0;
  for (let at = 0; at < removed.length; at += REMOVED_AT_ONCE) {
    const page = [...removed.subarray(at, at + REMOVED_AT_ONCE)];
    const accepted = await consistently(journal, (db) => acceptedValues(db, page, true));
    for (const values of accepted.values()) {
      const hashes = removedHashes(values, fold);
      if (hashes === null) continue;
      if (members.isWanted(hashes.folded) || wanted.isRemovedBy(hashes.removal)) count += 1;
    }
  }
  if (count > 0) throw new RetlError('data.removal-of-wanted', { count });
}

async function tellShown(
  journal: JournalPool,
  shown: ShownMembers,
  members: MemberTable,
): Promise<PlanIdentities> {
  const removed = members.removals(shown.limit).map(({ sequence }) => sequence);
  const values = await consistently(journal, (db) => heldValues(db, [...shown.sequences, ...removed]));
  return shown.tell(values, removed);
}
