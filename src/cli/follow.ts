/** Follows one run to its end, and answers Ctrl-C: looking away never stops a run. */

import { createInterface } from 'node:readline/promises';
import type { TemporalClient } from '../client/connect.ts';
import { signalMirror } from '../client/control.ts';
import type { Execution } from '../client/start.ts';
import { type WatchEvent, watchRun } from '../client/watch.ts';
import type { Progress } from '../domain/messages.ts';
import { showEnding } from './ending-view.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import type { Output } from './output.ts';
import { barLine, phaseWords, waitingWords } from './progress-view.ts';

/** Plain lines come at least this often, so that a log shows that the run lives. */
const PLAIN_EVERY_MS = 15_000;
/** A worker may be starting: before this there is nothing to worry about. */
const NO_ANSWER_AFTER_MS = 10_000;

export interface Followed {
  readonly mirror: string;
  readonly execution: Execution;
}

/** Resolves to the exit code of the run's ending, or of the watcher's leaving. */
export async function follow(
  output: Output,
  temporal: TemporalClient,
  followed: Followed,
): Promise<ExitCode> {
  const interrupts = new Interrupts(output, temporal, followed);
  const view = new ProgressView(output, temporal.taskQueue);
  const looking = new AbortController();
  const events = watchRun(temporal, followed.execution, { signal: looking.signal })[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([events.next(), interrupts.left]);
      if (next === 'left') return EXIT.interrupted;
      if (next.done === true) return EXIT.failure;
      if (next.value.kind === 'ended') {
        output.redraw('');
        return showEnding(output, followed.mirror, next.value.ending);
      }
      if (!interrupts.isAsking) view.show(next.value);
      if (isBlocked(next.value) && !output.isInteractive) return EXIT.blocked;
    }
  } finally {
    looking.abort();
    interrupts.stop();
  }
}

/** Nobody is there to decide: a job that waits for a person must not hang for days. */
function isBlocked(event: WatchEvent): boolean {
  return event.kind === 'progress' && event.progress.waiting?.kind === 'blocked';
}

class ProgressView {
  private last = '';
  private lastAt = 0;

  constructor(
    private readonly output: Output,
    private readonly taskQueue: string,
  ) {}

  show(event: Exclude<WatchEvent, { kind: 'ended' }>): void {
    if (event.kind === 'progress') this.progress(event.progress);
    else if (event.sinceMs >= NO_ANSWER_AFTER_MS) this.noAnswer();
  }

  private progress(progress: Progress): void {
    const now = Date.now();
    const words = progress.waiting === null ? phaseWords(progress) : waitingWords(progress.waiting, now);
    if (this.output.isInteractive) this.output.redraw(barLine(progress, this.output.columns, now));
    else
      this.plain(`${progress.phase}/${progress.waiting?.code ?? ''}`, words, {
        event: 'progress',
        ...progress,
      });
  }

  private noAnswer(): void {
    const words = `no worker answers on task queue ${this.taskQueue}; start one with \`retl worker\``;
    if (this.output.isInteractive) this.output.redraw(words.slice(0, Math.max(10, this.output.columns - 1)));
    else this.plain('no-answer', words, { event: 'no-answer', taskQueue: this.taskQueue });
  }

  /** A line whenever the phase changes or the run begins to wait, and now and then in between. */
  private plain(key: string, words: string, event: object): void {
    const now = Date.now();
    if (key === this.last && now - this.lastAt < PLAIN_EVERY_MS) return;
    this.last = key;
    this.lastAt = now;
    this.output.event(event);
    this.output.note(words);
  }
}

/**
 * The first Ctrl-C asks on a terminal, and leaves the run alone elsewhere; the second ends the program at once.
 */
class Interrupts {
  /** Resolves when the watcher leaves. */
  readonly left: Promise<'left'>;
  isAsking = false;
  private leave: () => void = () => undefined;
  private readonly listener = () => this.interrupted();

  constructor(
    private readonly output: Output,
    private readonly temporal: TemporalClient,
    private readonly followed: Followed,
  ) {
    this.left = new Promise((resolve) => {
      this.leave = () => resolve('left');
    });
    process.on('SIGINT', this.listener);
    process.on('SIGTERM', this.listener);
  }

  stop(): void {
    process.off('SIGINT', this.listener);
    process.off('SIGTERM', this.listener);
  }

  private interrupted(): void {
    if (this.isAsking) process.exit(EXIT.interrupted);
    this.isAsking = true;
    if (this.output.isInteractive) {
      this.ask().catch(() => this.leave());
      return;
    }
    this.sayLeft();
    this.leave();
  }

  private async ask(): Promise<void> {
    this.output.redraw('');
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    terminal.on('SIGINT', () => process.exit(EXIT.interrupted));
    const question = 'Leave it running [l], cancel it [c], or go on watching [w]? ';
    const answer = (await terminal.question(question)).trim().toLowerCase();
    terminal.close();
    if (answer === 'c') {
      await signalMirror(this.temporal, this.followed.mirror, 'cancel', this.followed.execution.workflowId);
      this.output.note('Asked it to cancel: requests under way are finished and recorded first.');
    } else if (answer !== 'w') {
      this.sayLeft();
      this.leave();
    }
    this.isAsking = false;
  }

  private sayLeft(): void {
    const { mirror } = this.followed;
    this.output.event({ event: 'left', mirror });
    this.output.note(
      `The run goes on. \`retl status ${mirror}\` shows it; \`retl cancel ${mirror}\` stops it.`,
    );
  }
}
