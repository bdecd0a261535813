/** One history's world: a mirror, its source and destination, the lives of its workers, an operator, and time. */

import { noopMetricMeter } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type pg from 'pg';
import type { Configuration } from '../../src/activities/deps.ts';
import { type Activities, createActivities } from '../../src/activities/index.ts';
import { RunMetrics } from '../../src/activities/run-metrics.ts';
import { parseSettings, settingsText } from '../../src/config/settings-text.ts';
import type { DestinationAdapter, Logger } from '../../src/destinations/port.ts';
import type { BatchId } from '../../src/domain/ids.ts';
import type { MirrorSettings } from '../../src/domain/settings.ts';
import { findBatch, resolveBatch } from '../../src/journal/resolve.ts';
import type { TestJournal } from '../support/journal.ts';
import { modelAdapter, modelSettings, modelSource } from './adapters.ts';
import type { Answer } from './answers.ts';
import { type DestinationPlan, ModelDestination, openingOf } from './destination.ts';
import { type Fault, Faults } from './faults.ts';
import { Life } from './life.ts';

/** What a person does about a blocked run: decides as it truly is, lets it try again, or ends it. */
export type Decision = 'resolve' | 'again' | 'cancel' | 'abort';

/** What somebody answers to a run that would remove too many; or nobody does. */
export type Verdict = 'approved' | 'rejected' | 'nobody' | 'cancel' | 'abort';

export interface WorldPlan extends DestinationPlan {
  readonly rows: number;
  readonly inFlight: number;
  readonly faults: readonly Fault[];
  readonly answers: readonly Answer[];
  readonly decisions: readonly Decision[];
  /** Rejections that a run goes on after: 0: it delivers the rest and holds; absent: it stops. Not where sets are replaced. */
  readonly tolerated?: number;
  /** Whether every run sends the unchanged members again: what was accepted before it is too old. */
  readonly refreshes?: boolean;
  /** Most removals of a run that nobody is asked about; absent: any number. */
  readonly limit?: number;
  readonly verdicts?: readonly Verdict[];
  /** How many points of others a frozen worker sleeps through. */
  readonly thawAfter: number;
}

/** A worker that stands still, and what its activity comes to in the end. */
interface Frozen {
  readonly life: Life;
  readonly work: Promise<unknown>;
  age: number;
  left: number;
}

/** Well below what a request may be held back, and far below the send deadline. */
const LATE_MS = 50_000;

export class World {
  readonly destination: ModelDestination;
  readonly settings: MirrorSettings;
  readonly faults: Faults;
  source: ReadonlyMap<string, string> = new Map();
  readonly #decisions: Decision[];
  readonly #verdicts: Verdict[];
  #frozen: Frozen[] = [];

  constructor(
    readonly journal: TestJournal,
    readonly mirror: string,
    readonly plan: WorldPlan,
  ) {
    this.destination = new ModelDestination(mirror, plan, [...plan.answers]);
    this.settings = modelSettings(mirror, plan);
    this.faults = new Faults(plan.faults);
    this.#decisions = [...plan.decisions];
    this.#verdicts = [...(plan.verdicts ?? [])];
  }

  readonly configuration: Configuration = {
    mirror: async () => this.settings,
    text: settingsText,
    parse: parseSettings,
    resolve: (options) => options,
    projection: () => Promise.reject(new Error('the mapping is made of rules')),
  };
  readonly logger: Logger = { info: () => undefined, warn: () => undefined };

  destinations(life: Life | null): readonly DestinationAdapter[] {
    return [modelAdapter(this.destination, life)];
  }

  get frozen(): number {
    return this.#frozen.length;
  }

  /** A worker that carries out one activity of a run, for an execution. */
  worker(run: string, firstRunId: string): { readonly life: Life; work<T>(call: Call<T>): Promise<T> } {
    const life = new Life(this.journal.runtime, this.faults, run);
    const env = new MockActivityEnvironment(
      {
        workflowNamespace: 'model',
        workflowExecution: { workflowId: `mirror/${this.mirror}`, runId: firstRunId },
      },
      // What dies is meant to.
      { logger: new DefaultLogger('ERROR', () => undefined) },
    );
    life.onPoint = () => this.#thawDue();
    life.onStop = () => env.cancel();
    const activities = createActivities({
      journal: life.journal,
      sources: [modelSource(() => this.source, life)],
      destinations: this.destinations(life),
      configuration: this.configuration,
      logger: this.logger,
      metrics: new RunMetrics(noopMetricMeter),
      cluster: 'model',
      searchAttributes: false,
    });
    return { life, work: (call) => env.run(() => call(activities, life.journal)) };
  }

  freeze(life: Life, work: Promise<unknown>): void {
    this.#frozen.push({ life, work, age: 0, left: this.plan.thawAfter });
  }

  /** All that are frozen go on, to wherever they get. */
  async thawAll(): Promise<void> {
    await this.#thaw(this.#frozen.splice(0));
  }

  async #thawDue(): Promise<void> {
    for (const frozen of this.#frozen) frozen.left -= 1;
    const due = this.#frozen.filter((frozen) => frozen.left < 0);
    this.#frozen = this.#frozen.filter((frozen) => frozen.left >= 0);
    await this.#thaw(due);
  }

  async #thaw(due: readonly Frozen[]): Promise<void> {
    for (const { life, work } of due) {
      life.thaw();
      await work;
    }
  }

  /** Time passes, for the journal and for whoever is frozen. */
  async pass(ms: number): Promise<void> {
    for (const frozen of this.#frozen) {
      frozen.age += ms;
      frozen.life.late = frozen.age > LATE_MS;
    }
    await this.journal.admin.query(
      `update retl.batch b set retry_at = retry_at - $2 * interval '1 ms', send_deadline = send_deadline - $2 * interval '1 ms',
         next_poll_at = next_poll_at - $2 * interval '1 ms'
       from retl.run r join retl.mirror m using (mirror_id) where b.run_id = r.run_id and m.name = $1 and r.closing is null and b.state not in ('settled', 'uploaded', 'refused')`,
      [this.mirror, ms],
    );
  }

  decision(): Decision {
    return this.#decisions.shift() ?? 'resolve';
  }

  verdict(): Verdict {
    return this.#verdicts.shift() ?? 'approved';
  }

  /** The deadline of whatever the guard asks passes. */
  async expire(): Promise<void> {
    await this.journal.admin.query(
      `update retl.run r set parked_at = parked_at - interval '2 days' from retl.mirror m
       where m.mirror_id = r.mirror_id and m.name = $1 and r.closing is null`,
      [this.mirror],
    );
  }

  /** A person finds out the truth about a batch and says it. */
  async resolve(batch: BatchId): Promise<void> {
    const view = await findBatch(this.journal.runtime, batch);
    if (view === null) throw new Error('a run is blocked by no batch');
    if (view.state !== 'unknown') return;
    const applied = this.#truth(view.action, batch, view.runId);
    if (!applied) await this.pass(view.deadlineLeftMs + 1_000);
    const verdict = applied ? 'accepted' : 'not-applied';
    const answer = await resolveBatch(this.journal.runtime, batch, verdict, 'it was looked up');
    if (answer.kind !== 'resolved') throw new Error(`the truth was refused: ${answer.kind}`);
  }

  #truth(action: string, batch: BatchId, run: string): boolean {
    switch (action) {
      case 'init':
        return this.destination.steps.complete(openingOf(run));
      case 'finish':
        return this.destination.steps.complete(batch);
      default:
        return this.destination.complete(batch);
    }
  }
}

export type Call<T> = (activities: Activities, journal: pg.Pool) => Promise<T>;
