/**
 * Somebody who looks after all mirrors, and says the truth: answers the guard, decides what is blocked after having looked at
 * the destination, and waits for send deadlines in less time than they take.
 */

import type { SignalName } from '../../src/domain/messages.ts';
import { decide, parkedRun } from '../../src/journal/approvals.ts';
import { retl } from '../cli/support.ts';
import type { System } from '../support/system.ts';
import type { Crew } from './crew.ts';
import type { Dice } from './dice.ts';
import type { Lane } from './lane.ts';

export interface OpenRun {
  readonly mirror: string;
  readonly run: string;
  readonly workflow: string;
  readonly parked: boolean;
}

interface Doubt {
  readonly mirror: string;
  readonly id: string;
  readonly action: string;
  readonly state: string;
  readonly reason: string | null;
  readonly jobs: readonly string[] | null;
  readonly sentForMs: number;
  readonly late: boolean;
  readonly resends: number;
  readonly workflow: string;
}

const OPEN_RUNS = `select name as mirror, run_id::text as run, holder_workflow_id as workflow, parked_at is not null as parked
  from retl.run join retl.mirror using (mirror_id) where closing is null`;
const DOUBTS = `select name as mirror, 'sha256:' || encode(batch_id, 'hex') as id, action, state, b.reason, job_ids as jobs,
  -- A copy that is sent again moves the deadline alone, which lies five minutes ahead.
  extract(epoch from clock_timestamp() - greatest(sent_at, send_deadline - interval '5 minutes'))::float8 * 1000 as "sentForMs",
  send_deadline < clock_timestamp() as late, resends,
  holder_workflow_id as workflow
  from retl.batch b join retl.run r using (run_id) join retl.mirror using (mirror_id)
  where r.closing is null and state in ('unknown', 'staged')`;
const EXPIRE = `update retl.batch set send_deadline = clock_timestamp() - interval '1 second'
  where batch_id = decode($1, 'hex') and state = 'unknown' and send_deadline > clock_timestamp()`;

/** Nothing that was sent is on its way for longer than this: neither a frozen line nor a frozen worker holds it back longer. */
const ARRIVED_MS = 20_000;
/** How long it waits for a run to find out by itself. */
const PATIENCE_MS = 32_000;
const STUCK = ['poll-http-404', 'job-failed', 'poll-deadline'];

export class Operator {
  /** The play is over: everything is approved of, and nobody waits. */
  quiet = false;
  readonly tally = new Map<string, number>();
  #rounds = 0;

  constructor(
    private readonly system: System,
    private readonly lanes: readonly Lane[],
    private readonly crew: Crew,
    private readonly dice: Dice,
    private readonly env: { readonly [name: string]: string },
    /** Told of what could not be done. */
    private readonly told: (what: string) => void,
  ) {}

  count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1);
  }

  async openRuns(): Promise<readonly OpenRun[]> {
    return this.system.rows<OpenRun & { [column: string]: unknown }>(OPEN_RUNS);
  }

  /** Looks at everything once. @throws where the journal is away */
  async round(): Promise<void> {
    this.#rounds += 1;
    const runs = await this.openRuns();
    for (const run of runs) {
      if (run.parked) await this.#answer(run);
      if (this.quiet && this.#rounds % 45 === 0) await this.tell(run.workflow, 'resume');
      if (this.quiet && this.#rounds % 10 === 3) await this.tell(run.workflow, 'poll');
    }
    for (const doubt of await this.system.rows<Doubt & { [column: string]: unknown }>(DOUBTS))
      await this.#lookInto(doubt);
  }

  async tell(workflow: string, signal: SignalName): Promise<void> {
    await this.system.temporal.client.workflow
      .getHandle(workflow)
      .signal(signal)
      .catch(() => undefined);
  }

  retl(...args: readonly string[]): ReturnType<typeof retl> {
    return retl(args, { cwd: this.system.project.folder, env: this.env });
  }

  async #answer({ mirror, workflow }: OpenRun): Promise<void> {
    const choice = this.quiet
      ? 'approve'
      : this.dice.weighted({ wait: 5, approve: 2, 'approve by command': 0.4, reject: 0.5 });
    if (choice === 'wait') return;
    if (choice === 'approve by command') {
      const { code, stderr } = await this.retl('approve', mirror, '--yes', '--because', 'it is meant');
      if (code !== 0) this.told(`approve ${mirror}: ${code} ${stderr}`);
      return this.count(code === 0 ? 'approvals' : 'answers that were not taken');
    }
    const asked = await parkedRun(this.system.journal, mirror);
    if (asked === null) return;
    const verdict = choice === 'reject' ? 'rejected' : 'approved';
    const { run, shown } = asked;
    const said = { run, shown, verdict, by: 'ann', because: 'it is meant', via: 'cli' } as const;
    const { kind } = await decide(this.system.journal, said);
    this.count(
      kind === 'recorded' ? (choice === 'reject' ? 'refusals' : 'approvals') : 'answers that were not taken',
    );
    await this.tell(workflow, 'look');
  }

  async #lookInto(doubt: Doubt): Promise<void> {
    const { id, state, sentForMs, reason, workflow, late } = doubt;
    const lane = this.lanes.find(({ name }) => name === doubt.mirror);
    const settled = this.crew.frozen === 0 && Date.now() - this.crew.thawedAt > ARRIVED_MS;
    if (lane === undefined || sentForMs < ARRIVED_MS || !settled) return;
    // What is sent again finds out by itself, but for a copy that is refused, which says nothing about the first.
    if (lane.repeats && (doubt.resends === 0 || reason === null)) return;
    if (state === 'unknown' && !late) {
      await this.system.rows(EXPIRE, [id.replace('sha256:', '')]);
      // What is sent again would only be refused again.
      if (!lane.repeats) await this.tell(workflow, 'resume');
      return;
    }
    if (
      sentForMs < PATIENCE_MS ||
      (state === 'staged' && !STUCK.includes(reason ?? '') && sentForMs < 60_000)
    )
      return;
    const verdict = lane.settle({ id, action: doubt.action, jobs: doubt.jobs ?? [] });
    if (verdict === null) await this.tell(workflow, 'resume');
    else await this.#resolve(doubt, verdict);
  }

  async #resolve({ id, mirror, workflow }: Doubt, verdict: 'accepted' | 'not-applied'): Promise<void> {
    if (this.dice.chance(0.4)) {
      const said = await this.retl('resolve', mirror, id, `--${verdict}`, '--because', 'looked up', '--yes');
      if (said.code === 0) this.count(`resolved as ${verdict}`);
      else this.told(`resolve ${mirror} ${id}: ${said.code} ${said.stderr}`);
      return;
    }
    const said = await this.system
      .rows(`select retl.resolve_batch(decode($1, 'hex'), $2, 'it was looked up')`, [
        id.replace('sha256:', ''),
        verdict,
      ])
      .then(
        () => true,
        () => false,
      );
    if (said) this.count(`resolved as ${verdict}`);
    await this.tell(workflow, 'look');
  }
}
