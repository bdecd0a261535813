/** Ctrl-C while following: the first asks on a terminal, and leaves the runs alone elsewhere; the second ends the program. */

import { createInterface } from 'node:readline/promises';
import type { TemporalClient } from '../client/connect.ts';
import { signalMirror } from '../client/control.ts';
import type { Execution } from '../client/start.ts';
import { EXIT } from './exit-codes.ts';
import type { Output } from './output.ts';
import type { ProgressBoard } from './progress-board.ts';

export interface Followed {
  readonly mirror: string;
  readonly execution: Execution;
}

export class Interrupts {
  /** Resolves when the watcher leaves. */
  readonly left: Promise<'left'>;
  #isAsking = false;
  /** While a question stands there: takes it away. */
  #withdraw: () => void = () => undefined;
  #leave: () => void = () => undefined;
  readonly #interrupt = () => this.#interrupted();
  readonly #terminate = () => this.#goAway();

  constructor(
    private readonly output: Output,
    private readonly temporal: TemporalClient,
    private readonly board: ProgressBoard,
    /** Those that have not ended. */
    private readonly followed: ReadonlyMap<string, Followed>,
  ) {
    this.left = new Promise((resolve) => {
      this.#leave = () => resolve('left');
    });
    process.on('SIGINT', this.#interrupt);
    process.on('SIGTERM', this.#terminate);
  }

  /** Nothing is followed any more: an open question needs no answer. */
  stop(): void {
    process.off('SIGINT', this.#interrupt);
    process.off('SIGTERM', this.#terminate);
    this.#withdraw();
    this.output.release();
  }

  #interrupted(): void {
    if (this.#isAsking) process.exit(EXIT.interrupted);
    this.#isAsking = true;
    if (this.output.isInteractive) this.#ask().catch(() => this.#goAway());
    else this.#goAway();
  }

  #goAway(): void {
    this.#sayLeft();
    this.#leave();
  }

  async #ask(): Promise<void> {
    this.output.hold();
    const answer = await this.#answer();
    this.output.release();
    if (answer === 'leave') return this.#goAway();
    if (answer === 'cancel') await this.#cancelAll();
    this.#isAsking = false;
    this.board.draw();
  }

  /** Until it is one of those that were offered; the end of the input leaves. */
  async #answer(): Promise<'leave' | 'cancel' | 'watch'> {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    const gone = new AbortController();
    // The terminal is raw while it asks: this is the second Ctrl-C.
    terminal.on('SIGINT', () => {
      process.stderr.write('\n');
      process.exit(EXIT.interrupted);
    });
    terminal.on('close', () => gone.abort());
    this.#withdraw = () => {
      process.stderr.write('\n');
      terminal.close();
    };
    const question = `Leave ${this.#them} running [l], cancel ${this.#them} [c], or go on watching [w]? `;
    try {
      for (;;) {
        const said = await terminal.question(question, { signal: gone.signal });
        const answer = ANSWERS[said.trim().toLowerCase()];
        if (answer !== undefined) return answer;
      }
    } catch {
      return 'leave';
    } finally {
      this.#withdraw = () => undefined;
      terminal.close();
    }
  }

  get #them(): string {
    return this.followed.size === 1 ? 'it' : 'them';
  }

  async #cancelAll(): Promise<void> {
    const what = this.#them;
    try {
      for (const { mirror, execution } of this.followed.values())
        await signalMirror(this.temporal, mirror, 'cancel', execution.workflowId);
      this.output.note(`Asked ${what} to cancel: requests under way are finished and recorded first.`);
    } catch {
      this.output.note(`Temporal cannot be asked to cancel ${what} now: try again.`);
    }
  }

  #sayLeft(): void {
    for (const mirror of this.followed.keys()) {
      this.output.event({ event: 'left', mirror });
      this.output.note(
        `The run goes on. \`retl status ${mirror}\` shows it; \`retl cancel ${mirror}\` stops it.`,
      );
    }
  }
}

const ANSWERS: { readonly [said: string]: 'leave' | 'cancel' | 'watch' } = {
  '': 'leave',
  l: 'leave',
  c: 'cancel',
  w: 'watch',
};
