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
  #leave: () => void = () => undefined;
  readonly #listener = () => this.#interrupted();

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
    process.on('SIGINT', this.#listener);
    process.on('SIGTERM', this.#listener);
  }

  stop(): void {
    process.off('SIGINT', this.#listener);
    process.off('SIGTERM', this.#listener);
  }

  #interrupted(): void {
    if (this.#isAsking) process.exit(EXIT.interrupted);
    this.#isAsking = true;
    if (this.output.isInteractive) {
      this.#ask().catch(() => this.#leave());
      return;
    }
    this.#sayLeft();
    this.#leave();
  }

  async #ask(): Promise<void> {
    this.board.hide(true);
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    terminal.on('SIGINT', () => process.exit(EXIT.interrupted));
    const what = this.followed.size === 1 ? 'it' : 'them';
    const question = `Leave ${what} running [l], cancel ${what} [c], or go on watching [w]? `;
    const answer = (await terminal.question(question)).trim().toLowerCase();
    terminal.close();
    if (answer === 'c') {
      for (const { mirror, execution } of this.followed.values())
        await signalMirror(this.temporal, mirror, 'cancel', execution.workflowId);
      this.output.note(`Asked ${what} to cancel: requests under way are finished and recorded first.`);
    } else if (answer !== 'w') {
      this.#sayLeft();
      this.#leave();
    }
    this.#isAsking = false;
    this.board.hide(false);
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
