/**
 * The workflow `index`: an index follows the log for as long as it is let (design.md section 8). It carries names, positions,
 * counts and codes; what is done stands in the index, so that an execution that is lost loses nothing.
 */

import {
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import {
  INDEX_NAME,
  type IndexInput,
  type IndexPlace,
  type IndexProgress,
  type IndexResult,
  type IndexStep,
  indexWorkflowId,
} from '../domain/index-messages.ts';
import { causeOf, defect, fail } from './endings.ts';
import { IndexControl, indexProgressQuery } from './index-control.ts';
import { handOver } from './index-hand-over.ts';
import { followIndex, rebuildIndex } from './index-proxies.ts';
import { fieldsOf } from './input.ts';

/** How long one activity replays; a message ends it sooner. */
const WINDOW_MS = 60_000;
/** Whoever commits wakes the index; this is for whom nobody wakes. */
const LOOK_AGAIN_MS = 60_000;
/** What another builder does, or an outage, may be over then. */
const TRY_AGAIN_MS = 60_000;
/** What others do: a worker of a newer release on this task queue, say. */
const PASSES: ReadonlySet<string> = new Set(['index.build-raced', 'index.newer-release']);

/** @throws ApplicationFailure `invalid` for another input; CancelledFailure where Temporal was asked to cancel */
export async function index(input: IndexInput): Promise<IndexResult> {
  try {
    const known = decoded(input);
    if (workflowInfo().workflowId !== indexWorkflowId(known.index)) return await handOver(known.index);
    const following = new Following(known);
    return await CancellationScope.nonCancellable(() => following.run());
  } catch (error) {
    throw defect(error);
  }
}

function decoded(input: unknown): IndexInput {
  const { index: name, carried, ...rest } = fieldsOf(input);
  if (typeof name !== 'string' || !INDEX_NAME.test(name) || Object.keys(rest).length > 0)
    throw fail('invalid', 'input', 'the input is {"index": "<name>"}, with the name of a configured index');
  const { paused, rebuild } = fieldsOf(carried);
  return { index: name, carried: { paused: paused === true, rebuild: rebuild === true } };
}

class Following {
  readonly #control: IndexControl;
  #phase: IndexProgress['phase'] = 'replaying';
  #place: IndexPlace | null = null;
  #code: string | null = null;
  #looking = false;

  constructor(private readonly input: IndexInput) {
    this.#control = new IndexControl(input.carried);
    setHandler(indexProgressQuery, () => this.#progress());
  }

  async run(): Promise<IndexResult> {
    const control = this.#control;
    while (!control.stop) {
      const heeded = control.messages;
      if (control.paused && !control.rebuild) {
        this.#show('paused', null);
        await control.wait(null, heeded, 'Paused');
      } else {
        const step = await this.#step(heeded);
        if (step !== null) await this.#after(step, heeded);
      }
      await this.#carryOn();
    }
    this.#show('stopped', null);
    if (control.cancelled) throw new CancelledFailure('cancelled');
    return { outcome: 'stopped', place: this.#place };
  }

  /** A rebuild that was asked for, else a window of replay. `null`: it was told to stop, or something is away. */
  async #step(heeded: number): Promise<IndexStep | null> {
    const control = this.#control;
    const { rebuild } = control;
    control.rebuild = false;
    try {
      const step = await this.#work(rebuild);
      if (step === null) control.rebuild ||= rebuild;
      return step;
    } catch (error) {
      const { type, code, message } = causeOf(error);
      if (type !== 'unavailable') return { kind: 'refused', code, message };
      control.rebuild ||= rebuild;
      this.#show('unavailable', code);
      // Whoever has spoken since the step began is heard at once.
      if (control.messages === heeded) await control.wait(TRY_AGAIN_MS, heeded, `Unavailable: ${code}`);
      return null;
    }
  }

  async #work(rebuild: boolean): Promise<IndexStep | null> {
    const { index: name } = this.input;
    if (!rebuild && this.#phase !== 'caught-up') this.#show('replaying', null);
    this.#looking = true;
    try {
      return await this.#control.stoppable<IndexStep>(() =>
        rebuild ? rebuildIndex({ index: name }) : followIndex({ index: name, windowMs: WINDOW_MS }),
      );
    } finally {
      this.#looking = false;
    }
  }

  async #after(step: IndexStep, heeded: number): Promise<void> {
    const control = this.#control;
    switch (step.kind) {
      case 'more':
        this.#place = placeOf(step);
        return this.#show('replaying', null);
      case 'caught-up':
        this.#place = placeOf(step);
        this.#show('caught-up', null);
        return control.wait(LOOK_AGAIN_MS, heeded, 'Until a run commits');
      case 'frozen':
        this.#place = placeOf(step);
        this.#show('frozen', 'index.frozen');
        return control.wait(null, heeded, 'Rolled back');
      case 'refused':
        this.#show('refused', step.code);
        return control.wait(PASSES.has(step.code) ? TRY_AGAIN_MS : null, heeded, step.code);
    }
  }

  #progress(): IndexProgress {
    const { index } = this.input;
    return { index, phase: this.#phase, place: this.#place, code: this.#code, looking: this.#looking };
  }

  #show(phase: IndexProgress['phase'], code: string | null): void {
    this.#phase = phase;
    this.#code = code;
    const place = this.#place;
    const where = place === null ? '' : `, position ${place.position ?? 'none yet'}, ${place.rows} rows`;
    const behind =
      place === null ? '' : `\n\n${place.lag.positions} positions (${place.lag.ms} ms) behind the log`;
    const why =
      code === null ? '' : `\n\n**${code}**. The signal \`resume\` tries again, \`rebuild\` begins anew.`;
    setCurrentDetails(`**${this.input.index}**: ${phase}${where}${behind}${why}`);
  }

  /** Loses no message: what was asked and is not done is carried over. */
  async #carryOn(): Promise<void> {
    const { paused, rebuild, stop } = this.#control;
    if (stop || !workflowInfo().continueAsNewSuggested) return;
    await continueAsNew<typeof index>({ index: this.input.index, carried: { paused, rebuild } });
  }
}

function placeOf({ build, state, position, rows, lag }: IndexPlace): IndexPlace {
  return { build, state, position, rows, lag };
}
