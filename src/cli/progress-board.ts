/** What is shown of runs while they last: a line for each that a terminal redraws, or plain lines where nobody watches. */

import type { WatchEvent } from '../client/watch.ts';
import type { Progress } from '../domain/messages.ts';
import { noWorkerWords } from './no-worker.ts';
import type { Output } from './output.ts';
import { barLine, phaseWords, waitingWords } from './progress-view.ts';

/** Plain lines come at least this often, so that a log shows that the run lives. */
const PLAIN_EVERY_MS = 15_000;

interface Shown {
  readonly text: string;
  /** What a plain line was last about, and when. */
  readonly key: string;
  readonly at: number;
}

export class ProgressBoard {
  readonly #lines = new Map<string, Shown>();

  constructor(
    private readonly output: Output,
    mirrors: readonly string[],
    private readonly taskQueue: string,
  ) {
    for (const mirror of mirrors) this.#lines.set(mirror, { text: 'started', key: '', at: 0 });
    this.#width = mirrors.length === 1 ? 0 : Math.max(...mirrors.map(({ length }) => length)) + 2;
  }

  /** Columns that the mirror's name takes; 0 where there is but one. */
  readonly #width: number;

  show(mirror: string, event: Exclude<WatchEvent, { kind: 'ended' }>): void {
    if (event.kind === 'progress') this.#progress(mirror, event.progress);
    else this.#noAnswer(mirror);
  }

  /** Writes something above the lines that are redrawn. */
  above(write: () => void): void {
    this.output.redraw([]);
    write();
    this.draw();
  }

  /** The run has ended: `write` says how. */
  end(mirror: string, write: () => void): void {
    this.#lines.delete(mirror);
    this.above(write);
  }

  #progress(mirror: string, progress: Progress): void {
    const now = Date.now();
    const words = progress.waiting === null ? phaseWords(progress) : waitingWords(progress.waiting, now);
    if (this.output.isInteractive)
      this.#redraw(mirror, barLine(progress, this.output.columns - this.#width, now));
    else {
      const key = `${progress.phase}/${progress.waiting?.code ?? ''}`;
      this.#plain(mirror, key, words, { event: 'progress', ...progress });
    }
  }

  #noAnswer(mirror: string): void {
    const words = noWorkerWords(this.taskQueue);
    if (this.output.isInteractive) this.#redraw(mirror, words);
    else this.#plain(mirror, 'no-answer', words, { event: 'no-answer', mirror, taskQueue: this.taskQueue });
  }

  #redraw(mirror: string, text: string): void {
    this.#lines.set(mirror, { text, key: '', at: 0 });
    this.draw();
  }

  /** As many lines as the terminal has room for: it could not take back what has left its top. */
  draw(): void {
    const lines = [...this.#lines].map(([mirror, { text }]) =>
      `${this.#width === 0 ? '' : mirror.padEnd(this.#width)}${text}`.slice(
        0,
        Math.max(10, this.output.columns - 1),
      ),
    );
    const room = Math.max(1, this.output.rows - 2);
    const more = lines.length - room;
    this.output.redraw(more > 0 ? [...lines.slice(0, room), `and ${more} more`] : lines);
  }

  /** A line whenever the phase changes or the run begins to wait, and now and then in between. */
  #plain(mirror: string, key: string, text: string, event: object): void {
    const at = Date.now();
    const last = this.#lines.get(mirror);
    if (last !== undefined && key === last.key && at - last.at < PLAIN_EVERY_MS) return;
    this.#lines.set(mirror, { text, key, at });
    this.output.event(event);
    this.output.note(this.#width === 0 ? text : `${mirror}: ${text}`);
  }
}
