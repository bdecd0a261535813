/** Follows runs to their ends. Looking away never stops a run. */

import type { TemporalClient } from '../client/connect.ts';
import { type WatchEvent, watchRun } from '../client/watch.ts';
import type { Parked } from '../domain/messages.ts';
import { showEnding } from './ending-view.ts';
import { EXIT, type ExitCode, worstExit } from './exit-codes.ts';
import { type Followed, Interrupts } from './interrupts.ts';
import type { Output } from './output.ts';
import { showParked } from './parked-view.ts';
import { ProgressBoard } from './progress-board.ts';

/** A worker answers at once or is busy for a moment; a missing one must be named while somebody still looks. */
const ANSWER_WITHIN_MS = 2_500;

export interface FollowOptions {
  /** Whether to wait for a person's answer where nobody watches: a job would else hang for days. */
  readonly wait: boolean;
}

/** Resolves to the exit code of the run's ending, or of the watcher's leaving; of several, to the worst. */
export async function follow(
  output: Output,
  temporal: TemporalClient,
  all: readonly Followed[],
  options: FollowOptions,
): Promise<ExitCode> {
  // Whatever ends the process before the runs have ended (a reader that closes the pipe): it says nothing of them.
  process.exitCode = EXIT.interrupted;
  const open = new Map(all.map((one) => [one.mirror, one]));
  const board = new ProgressBoard(output, [...open.keys()], temporal.taskQueue);
  const interrupts = new Interrupts(output, temporal, board, open);
  const looking = new AbortController();
  const watchers = all.map(async (followed) => {
    const watcher = new Watcher(output, board, followed.mirror, options);
    const { execution } = followed;
    const events = watchRun(temporal, execution, {
      answerWithinMs: ANSWER_WITHIN_MS,
      signal: looking.signal,
    });
    const exit = await watcher.watch(events[Symbol.asyncIterator](), interrupts.left);
    open.delete(followed.mirror);
    return exit;
  });
  try {
    return worstExit(await Promise.all(watchers));
  } finally {
    interrupts.stop();
    output.redraw([]);
    looking.abort();
  }
}

class Watcher {
  /** Digest of what was last shown: a run that parks again asks something else. */
  #asked = '';

  constructor(
    private readonly output: Output,
    private readonly board: ProgressBoard,
    private readonly mirror: string,
    private readonly options: FollowOptions,
  ) {}

  async watch(events: AsyncIterator<WatchEvent, void>, left: Promise<'left'>): Promise<ExitCode> {
    for (;;) {
      const next = await Promise.race([events.next(), left]);
      if (next === 'left') return EXIT.interrupted;
      if (next.done === true) return EXIT.failure;
      const exit = this.#see(next.value);
      if (exit !== null) return exit;
    }
  }

  /** `null`: there is more to see. */
  #see(event: WatchEvent): ExitCode | null {
    if (event.kind === 'ended') {
      let exit: ExitCode = EXIT.failure;
      this.board.end(this.mirror, () => {
        exit = showEnding(this.output, this.mirror, event.ending);
      });
      return exit;
    }
    const { waiting, parked } = event.kind === 'progress' ? event.progress : NOTHING;
    this.board.show(this.mirror, event);
    const isAlone = !this.output.isInteractive && !this.options.wait;
    if (parked !== null) this.#ask(parked, isAlone);
    if (isAlone && parked !== null) return EXIT.guardHeld;
    if (isAlone && waiting?.kind === 'blocked') return EXIT.blocked;
    return null;
  }

  #ask(parked: Parked, isLast: boolean): void {
    if (parked.shown === this.#asked) return;
    this.#asked = parked.shown;
    this.board.above(() => showParked(this.output, this.mirror, parked, isLast));
  }
}

const NOTHING = { waiting: null, parked: null } as const;
