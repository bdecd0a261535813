/**
 * One execution of the workflow, in miniature: the phase table of src/workflows, with activities that are called and called
 * again as Temporal would, by workers that die or freeze. The workflow itself is tested in test/workflow.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { CloseArgs, RunRef, StepResult } from '../../src/activities/results.ts';
import type { BatchId } from '../../src/domain/ids.ts';
import { PHASES, type Phase } from '../../src/domain/run.ts';
import { admission } from './admission.ts';
import type { Call, World } from './world.ts';

type Unapproved = 'guard-rejected' | 'guard-expired';

export type Outcome =
  | Unapproved
  | 'completed'
  | 'cancelled'
  | 'aborted'
  | 'rejected'
  | 'misconfigured'
  | 'terminated';

class Ending extends Error {
  constructor(readonly how: Exclude<Outcome, 'completed'>) {
    super(how);
  }
}

const TRIES = 40;
let serial = 0;

export class Execution {
  readonly firstRunId: string;
  #request: 'none' | 'cancelled' | 'aborted' = 'none';
  #phase: Phase = 'init';
  #ref: RunRef = { run: '', firstRunId: '' };

  constructor(
    private readonly world: World,
    /** Called after each activity. */
    private readonly check: () => Promise<void>,
    /** Called with each fresh run. */
    private readonly began: (run: string) => void,
  ) {
    serial += 1;
    this.firstRunId = `execution-${serial}`;
  }

  async play(): Promise<Outcome> {
    try {
      return await this.#runs();
    } catch (error) {
      if (error instanceof Ending && error.how === 'terminated') return error.how;
      throw error;
    }
  }

  async #runs(): Promise<Outcome> {
    for (let resumed = false; ; ) {
      const { run, resume, phase } = await this.#certain((_, journal) =>
        admission(this.world, this.firstRunId, journal),
      );
      this.#ref = { run, firstRunId: this.firstRunId };
      this.#phase = phase;
      // Nothing is continued as new here; and an admission whose answer was lost is answered as it was.
      if (resume === 'held') throw new Error('an execution holds a run that it was never told of');
      if (resume === 'fresh') this.began(run);
      resumed ||= resume === 'sealed';
      if (resume !== 'fresh' && resume !== 'sealed') {
        await this.#close(resume === 'discard' ? 'discarded' : resume);
        resumed = false;
        if (this.#request !== 'none') return this.#request;
        continue;
      }
      const outcome = await this.#guarded(phase);
      if (outcome !== 'completed' || !resumed || this.#request !== 'none') return outcome;
      resumed = false;
    }
  }

  async #guarded(phase: Phase): Promise<Outcome> {
    try {
      await this.#phases(phase);
      return 'completed';
    } catch (error) {
      if (!(error instanceof Ending)) throw error;
      switch (error.how) {
        case 'terminated':
          throw error;
        case 'cancelled':
        case 'misconfigured': {
          const how = error.how === 'cancelled' ? 'cancelled' : 'failed';
          // As in the workflow, which takes no failure of it to heart: it may have been let go already.
          await this.#act((a) => a.release({ ...this.#ref, how, reason: null })).catch((error: unknown) => {
            if (!(error instanceof ApplicationFailure)) throw error;
          });
          return error.how;
        }
        default:
          return (await this.#close(error.how)) ? error.how : 'completed';
      }
    }
  }

  async #phases(from: Phase): Promise<void> {
    const ref = this.#ref;
    const due = (phase: Phase) => {
      if (PHASES.indexOf(from) > PHASES.indexOf(phase)) return false;
      this.#phase = phase;
      return true;
    };
    const deliver = (action: 'upsert' | 'remove') =>
      this.#step((a) => a.deliver({ ...ref, action, windowMs: 60_000, resolveOnly: false }));
    if (due('init')) await this.#step((a) => a.init(ref));
    if (due('extract')) await this.#step((a) => a.extract(ref));
    if (due('seal')) await this.#once((a) => a.seal(ref), 'sealed');
    if (due('guard')) await this.#judged();
    if (due('additions')) await deliver('upsert');
    if (due('removals')) await deliver('remove');
    if (due('finish')) await this.#step((a) => a.finish(ref));
    this.#phase = 'promote';
    await this.#certain((a) => a.promote(ref));
  }

  async #step(call: Call<StepResult>): Promise<void> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      this.#mayGoOn();
      const result = await this.#act(call);
      if (result === null) continue;
      switch (result.kind) {
        case 'more':
        case 'stopped':
          break;
        case 'done':
          return;
        case 'wait':
        case 'pending':
          await this.world.pass(result.ms);
          break;
        case 'blocked':
          await this.#decide(result.batch);
          break;
        case 'held':
          await this.#park(result.shown);
          break;
        default:
          throw new Ending(result.kind);
      }
    }
    throw new Error(`the ${this.#phase} come to no end`);
  }

  async #judged(): Promise<void> {
    for (;;) {
      this.#mayGoOn();
      const result = await this.#act((a) => a.guard(this.#ref));
      if (result === null) continue;
      if (result.kind === 'passed') return;
      if (result.kind === 'invalid' || result.kind === 'plan-stale')
        throw new Error(`not so: ${result.kind}`);
      if (result.kind !== 'held') throw new Ending(result.kind);
      await this.#park(result.shown);
    }
  }

  /** Beyond the limits: somebody answers, or nobody does in time. */
  async #park(shown: string): Promise<void> {
    const verdict = this.world.verdict();
    switch (verdict) {
      case 'approved':
      case 'rejected':
        await this.#certain((a) => a.decide({ run: this.#ref.run, shown, verdict }));
        return;
      case 'nobody':
        return this.world.expire();
      default:
        this.#request = verdict === 'cancel' ? 'cancelled' : 'aborted';
    }
  }

  async #once(call: Call<{ readonly kind: string }>, expected: string): Promise<void> {
    for (;;) {
      this.#mayGoOn();
      const result = await this.#act(call);
      if (result === null) continue;
      if (result.kind !== expected) throw new Error(`not ${expected}: ${JSON.stringify(result)}`);
      return;
    }
  }

  async #certain<T>(call: Call<T>): Promise<T> {
    for (;;) {
      const result = await this.#act(call);
      if (result !== null) return result;
    }
  }

  #mayGoOn(): void {
    if (this.#request !== 'none') throw new Ending(this.#request);
  }

  async #decide(batch: string, decision = this.world.decision()): Promise<void> {
    if (decision === 'resolve') await this.world.resolve(batch as BatchId);
    else if (decision !== 'again') this.#request = decision === 'cancel' ? 'cancelled' : 'aborted';
  }

  /** False where the finish turned out to be accepted, so that the run completes. */
  async #close(closing: CloseArgs['closing']): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const result = await this.#certain((a) => a.close({ ...this.#ref, closing, reason: null }));
      if (result.kind === 'closed') return true;
      if (result.kind === 'too-late') {
        await this.#certain((a) => a.promote(this.#ref));
        return false;
      }
      const open = await this.#certain((a) => this.#resolving(a));
      if (open.kind === 'wait' || open.kind === 'pending') await this.world.pass(open.ms);
      if (open.kind === 'blocked') await this.#decide(open.batch, 'resolve');
    }
    throw new Error('the run cannot be closed');
  }

  #resolving(a: Parameters<Call<StepResult>>[0]): Promise<StepResult> {
    const ref = { ...this.#ref, resolveOnly: true };
    switch (this.#phase) {
      case 'additions':
        return a.deliver({ ...ref, action: 'upsert', windowMs: 60_000 });
      case 'removals':
        return a.deliver({ ...ref, action: 'remove', windowMs: 60_000 });
      case 'finish':
        return a.finish(ref);
      default:
        return a.init(ref);
    }
  }

  /** An activity, called until some worker finishes it; null where it was told to stop. */
  async #act<T>(call: Call<T>): Promise<T | null> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { life, work } = this.world.worker(this.#ref.run, this.firstRunId);
      const ended = work(call).then(
        (value) => ({ kind: 'value', value }) as const,
        (error: unknown) => ({ kind: 'error', error }) as const,
      );
      const end = await Promise.race([ended, life.lost.then(() => null)]);
      if (life.fate === 'freeze') this.world.freeze(life, ended);
      else if (life.dead) await life.die().then(() => ended);
      await this.check();
      if (life.asked === 'cancel') this.#request = 'cancelled';
      if (life.asked === 'abort') this.#request = 'aborted';
      if (life.fate === 'terminate') throw new Ending('terminated');
      if (life.fate !== null || end === null) continue;
      if (end.kind === 'value') return end.value;
      if (end.error instanceof CancelledFailure) return null;
      if (!(end.error instanceof ApplicationFailure)) throw end.error;
      if (end.error.nonRetryable === true) throw end.error;
      await sleep(10);
    }
    throw new Error('no worker finishes the activity');
  }
}
