/** What must be so after every step of every history, read from the journal by somebody who has no part in it. */

import {
  type LogPosition,
  logPosition,
  type MirrorId,
  mirrorId,
  runId,
  type Sha256,
  sha256FromHex,
  type TargetId,
  targetId,
} from '../../src/domain/ids.ts';
import { entryHash, logHead, readEffects, readEntries } from '../../src/journal/log.ts';
import { memberOf } from '../../src/journal/membership.ts';
import { loadRun } from '../../src/journal/run-record.ts';
import type { TestJournal } from '../support/journal.ts';
import { identityHash } from '../support/journal-run.ts';
import { effectOf, type ModelDestination, same } from './destination.ts';

/** Reads the log once, entry by entry, and proves that it has no gap and that each entry follows from the one before. */
export class LogReader {
  #position: LogPosition = logPosition(0);
  #hash: Sha256 = sha256FromHex('0'.repeat(64));

  constructor(private readonly journal: TestJournal) {}

  /** Effects of one mirror among the entries since the last call, in order. */
  async news(mirror: MirrorId): Promise<readonly { readonly run: string; readonly effect: Effect }[]> {
    const found: { run: string; effect: Effect }[] = [];
    for (const entry of await readEntries(this.journal.runtime, this.#position, 10_000)) {
      if (entry.position !== this.#position + 1n) throw new Error('the log has a gap');
      if (entry.previousHash !== this.#hash) throw new Error('an entry does not follow from the one before');
      if (entryHash(entry) !== entry.entryHash) throw new Error('an entry is not what its hash says');
      this.#position = entry.position;
      this.#hash = entry.entryHash;
      if (entry.mirror !== mirror || entry.kind === 'finish') continue;
      const effects = await readEffects(this.journal.runtime, entry);
      found.push(...effects.map((effect) => ({ run: entry.run.toString(), effect })));
    }
    return found;
  }

  /** The head names the last entry. */
  async atHead(): Promise<void> {
    const head = await logHead(this.journal.runtime);
    if (head.position !== this.#position || head.entryHash !== this.#hash)
      throw new Error('the head of the log is not its last entry');
  }
}

interface Effect {
  readonly action: 'upsert' | 'remove';
  readonly payload: string;
}

/** Rules 1 and 4, and what a closed run is, over all runs of a mirror. */
const RULES = `
  select r.run_id::text as run, r.phase, r.closing,
    r.removals_end is not null and exists (select from retl.batch b where b.run_id = r.run_id and b.action = 'upsert'
      and b.state not in ('settled', 'uploaded', 'not-applied', 'refused')) as early_removals,
    exists (select from retl.batch a join retl.batch b on b.run_id = a.run_id and b.batch_id <> a.batch_id
      and b.operations && a.operations where a.run_id = r.run_id and a.state not in ('not-applied', 'refused') and b.state not in ('not-applied', 'refused'))
      as twice_open,
    case r.on_rejection when 'tolerate' then r.max_rejections else 0 end < (
      select sum(case when b.divisible then upper(b.operations) - lower(b.operations) else b.rejected end) from retl.batch b
      where b.run_id = r.run_id and case when r.phase in ('finish', 'promote', 'complete') then true
        else b.action = 'upsert' and r.removals_end is not null end) as intolerable,
    r.phase in ('removals', 'finish', 'promote', 'complete') and r.planned_removed > r.max_removals and not exists (
      select from retl.approval a where a.run_id = r.run_id and a.verdict = 'approved' and a.removals = r.planned_removed)
      as unasked,
    exists (select from retl.batch b where b.run_id = r.run_id and b.state in ('sending', 'unknown', 'staged')) as unresolved,
    case when r.phase in ('promote', 'complete') then coalesce((select 'sha256:' || encode(b.batch_id, 'hex') from retl.batch b
      where b.run_id = r.run_id and b.action = 'finish' and b.state = 'settled'), 'none') end as finish,
    md5((select coalesce(string_agg(b.batch_id::text || b.state || coalesce(b.receipt, '') || b.accepted || b.resends
      || coalesce(b.position, 0), ',' order by b.batch_id), '') from retl.batch b where b.run_id = r.run_id)
      || r.epoch || r.phase || coalesce(r.closing, '')) as content
  from retl.run r join retl.mirror m using (mirror_id) where m.name = $1`;

interface RunState {
  readonly run: string;
  readonly phase: string;
  readonly closing: string | null;
  readonly early_removals: boolean;
  readonly twice_open: boolean;
  readonly unasked: boolean | null;
  readonly intolerable: boolean | null;
  readonly unresolved: boolean;
  /** Of a run that is being promoted, or was: the finish that it rests on. */
  readonly finish: string | null;
  readonly content: string;
}

export class Invariants {
  /** What the log says that the target holds, effect by effect. */
  readonly held = new Map<string, string>();
  readonly #closed = new Map<string, string>();
  #ids: { readonly mirror: MirrorId; readonly target: TargetId } | null = null;

  constructor(
    private readonly journal: TestJournal,
    private readonly mirror: string,
    private readonly destination: ModelDestination,
    private readonly log: LogReader,
  ) {}

  /** After each activity. @throws Error with the rule that is broken */
  async check(): Promise<void> {
    const [violation] = this.destination.violations;
    if (violation !== undefined) throw new Error(violation);
    const named = await this.#named();
    if (named === null) return;
    for (const { run, effect } of await this.log.news(named.mirror)) {
      if (!this.destination.effects.has(effectOf(run, effect.action, effect.payload)))
        throw new Error('rule 2: the log says more than the destination has accepted');
      const { id, v } = JSON.parse(effect.payload) as { readonly id: string; readonly v?: string };
      if (effect.action === 'upsert') this.held.set(id, v ?? '');
      else this.held.delete(id);
    }
    for (const state of await this.#states()) this.#checkRun(state);
  }

  /** Whether anything of any run is neither accepted nor absent, or accepted and still to be recorded member by member. */
  async unresolved(): Promise<boolean> {
    const open = (state: RunState) => state.phase === 'promote' && state.closing === null;
    return (await this.#states()).some((state) => state.unresolved || open(state));
  }

  /** Between executions: membership is what the log says; and where nothing is open, what the destination holds. */
  async checkMembership(ids: readonly string[], settled: boolean): Promise<void> {
    await this.log.atHead();
    const target = (await this.#named())?.target;
    if (target === undefined) return;
    for (const id of ids) {
      const hash = sha256FromHex(identityHash(id).toString('hex'));
      const is = await memberOf(this.journal.runtime, target, hash);
      const payload = is.kind === 'held' ? (JSON.parse(is.payload) as { readonly v: string }).v : undefined;
      if (payload !== this.held.get(id)) throw new Error('the membership is not what the log says');
    }
    if (settled && !same(this.destination.members, this.held))
      throw new Error('nothing is open, and the destination holds another set than the journal says');
  }

  #checkRun(state: RunState): void {
    if (state.early_removals)
      throw new Error('rule 1: removals are planned before every addition is accepted');
    if (state.twice_open) throw new Error('rule 4: an operation is in two requests');
    if (state.intolerable === true)
      throw new Error('rule 5: a run went on with more rejections than it tolerates');
    if (state.unasked === true)
      throw new Error('more is removed than the limits allow, and nobody was asked');
    if (state.finish !== null && !this.destination.steps.isDone(state.finish))
      throw new Error('rule 10: promoted before the destination has finished');
    const before = this.#closed.get(state.run);
    if (before !== undefined && before !== state.content) throw new Error('a closed run has changed');
    if (state.closing !== null) this.#closed.set(state.run, state.content);
  }

  /** Null before the first admission. */
  async #named(): Promise<{ readonly mirror: MirrorId; readonly target: TargetId } | null> {
    if (this.#ids !== null) return this.#ids;
    const { rows } = await this.journal.admin.query<{ mirror: string; target: string }>(
      `select mirror_id::text as mirror, target_id::text as target from retl.target join retl.mirror using (mirror_id)
       where name = $1`,
      [this.mirror],
    );
    const [row] = rows;
    if (row === undefined) return null;
    this.#ids = { mirror: mirrorId(row.mirror), target: targetId(row.target) };
    return this.#ids;
  }

  async #states(): Promise<readonly RunState[]> {
    return (await this.journal.admin.query<RunState>(RULES, [this.mirror])).rows;
  }
}

/** Everything that a closed run of completed outcome has left open. */
export async function closingOf(journal: TestJournal, run: string): Promise<string | null> {
  return (await loadRun(journal.runtime, runId(run))).closing;
}
