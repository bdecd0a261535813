/** A history: runs of one mirror over a source that changes, with everything that goes wrong meanwhile, in any order. */

import fc from 'fast-check';
import type { TestJournal } from '../support/journal.ts';
import type { Answer } from './answers.ts';
import { same } from './destination.ts';
import { Execution, type Outcome } from './execution.ts';
import type { Fault } from './faults.ts';
import { closingOf, Invariants, LogReader } from './invariants.ts';
import { World, type WorldPlan } from './world.ts';

const IDS = ['a', 'b', 'c', 'd', 'e', 'f'];

const DESIRED = fc.dictionary(fc.constantFrom(...IDS), fc.constantFrom('1', '2', '3'), {
  maxKeys: IDS.length,
  noNullPrototype: true,
});

const FAULT: fc.Arbitrary<Fault> = fc.record({
  after: fc.nat({ max: 50 }),
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('kill' as const) },
    { weight: 3, arbitrary: fc.constant('freeze' as const) },
    {
      weight: 5,
      arbitrary: fc.constantFrom('drop', 'stop', 'cancel', 'abort', 'terminate'),
    },
  ),
});

const ANSWER: fc.Arbitrary<Answer> = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Answer>({ kind: 'ok' }) },
  { weight: 2, arbitrary: fc.boolean().map((applied): Answer => ({ kind: 'lost', applied })) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<Answer>(
      { kind: 'throws' },
      { kind: 'short' },
      { kind: 'later' },
      { kind: 'too-large' },
      { kind: 'misconfigured' },
    ),
  },
  { weight: 1, arbitrary: fc.nat({ max: 3 }).map((at): Answer => ({ kind: 'reject', at })) },
  { weight: 1, arbitrary: fc.constant<Answer>({ kind: 'refuse' }) },
);

export interface HistoryPlan extends WorldPlan {
  readonly runs: readonly { readonly [id: string]: string }[];
}

export const HISTORY: fc.Arbitrary<HistoryPlan> = fc.record<HistoryPlan>({
  kind: fc.constantFrom('idempotent', 'lookup', 'manual'),
  asynchronous: fc.boolean(),
  replacement: fc.constantFrom('none', 'none', 'on_accept', 'at_finish'),
  slow: fc.boolean(),
  rows: fc.integer({ min: 1, max: 3 }),
  inFlight: fc.integer({ min: 1, max: 2 }),
  faults: fc.array(FAULT, { maxLength: 8 }),
  answers: fc.array(ANSWER, { maxLength: 16 }),
  decisions: fc.array(fc.constantFrom('resolve', 'again', 'cancel', 'abort'), { maxLength: 4 }),
  tolerated: fc.option(fc.nat({ max: 2 }), { nil: undefined }),
  refreshes: fc.boolean(),
  limit: fc.option(fc.nat({ max: 2 }), { nil: undefined }),
  verdicts: fc.array(fc.constantFrom('approved', 'rejected', 'nobody', 'cancel', 'abort'), { maxLength: 3 }),
  thawAfter: fc.nat({ max: 40 }),
  runs: fc.array(DESIRED, { minLength: 1, maxLength: 3 }),
});

/** What was met on the way: a model that never comes to the places that matter proves nothing. */
export class Coverage {
  readonly counts = new Map<string, number>();

  add(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}

let serial = 0;

/** Plays histories, one after the other, on one journal. */
export class Player {
  readonly coverage = new Coverage();
  readonly #log: LogReader;

  constructor(private readonly journal: TestJournal) {
    this.#log = new LogReader(journal);
  }

  /** @throws Error with the rule that was broken */
  async play(plan: HistoryPlan): Promise<void> {
    serial += 1;
    this.coverage.add('histories');
    const mirror = `model-${serial}`;
    const world = new World(this.journal, mirror, plan);
    const invariants = new Invariants(this.journal, mirror, world.destination, this.#log);
    const history = new History(world, invariants, this.coverage);
    try {
      for (const desired of plan.runs) await history.run(desired);
      await history.end(plan.runs[0] ?? {});
    } finally {
      await world.thawAll();
    }
  }
}

class History {
  #run = '';

  constructor(
    private readonly world: World,
    private readonly invariants: Invariants,
    private readonly coverage: Coverage,
  ) {}

  /** One execution over a source that holds these members. */
  async run(desired: { readonly [id: string]: string }): Promise<Outcome> {
    const { world, invariants } = this;
    world.source = new Map(Object.entries(desired));
    const execution = new Execution(
      world,
      () => invariants.check(),
      (run) => this.#begin(run),
    );
    const outcome = await execution.play();
    this.coverage.add(outcome);
    await invariants.check();
    const settled = world.frozen === 0 && !(await invariants.unresolved());
    await invariants.checkMembership(IDS, settled);
    if (outcome !== 'completed') return outcome;
    if ((await closingOf(world.journal, this.#run)) !== 'completed')
      throw new Error('completed, and not closed');
    const sendsAll = world.plan.refreshes === true || world.destination.replacement !== 'none';
    if (sendsAll && !world.destination.hasSentAll(this.#run))
      throw new Error('completed, and not every member was sent, as each run is to do');
    if (world.frozen === 0 && !world.destination.isExact())
      throw new Error('completed, and the destination holds another set than the sealed one');
    return outcome;
  }

  /** Nothing goes wrong any more: the mirror comes to what the source holds, whatever was before. */
  async end(desired: { readonly [id: string]: string }): Promise<void> {
    this.world.faults.end();
    this.world.destination.behave();
    await this.world.thawAll();
    await this.invariants.check();
    // What is resumed first may have been rejected, or asked to end, before.
    for (let tries = 0; (await this.run(desired)) !== 'completed'; tries += 1) {
      if (tries === 3) throw new Error('with nothing in its way, no run completes');
    }
    if (!same(this.world.destination.members, this.world.source))
      throw new Error('with nothing in its way, the run did not make the destination equal to the source');
  }

  #begin(run: string): void {
    this.#run = run;
    // A generation that is resumed later was read now.
    this.world.destination.begin(this.world.source);
  }
}
