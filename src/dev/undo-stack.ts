/** What must be undone when a command ends, whichever way: at its end, on an error, on Ctrl-C. */

export class UndoStack {
  readonly #undos: (() => Promise<void>)[] = [];
  #running: Promise<void> | undefined;

  /** Undone in reverse order; at once, when undoing has begun already. */
  readonly defer = (undo: () => Promise<void>): void => {
    this.#undos.push(undo);
    if (this.#running !== undefined) this.#running = this.#running.then(() => this.#drain());
  };

  /** Safe to call more than once. One step that fails does not keep the others from being undone. */
  async run(): Promise<void> {
    this.#running ??= this.#drain();
    let seen: Promise<void> | undefined;
    while (seen !== this.#running) {
      seen = this.#running;
      await seen;
    }
  }

  async #drain(): Promise<void> {
    for (let undo = this.#undos.pop(); undo !== undefined; undo = this.#undos.pop()) {
      await undo().catch(() => undefined);
    }
  }
}

/**
 * Calls `stop` once on the first SIGINT, SIGTERM or SIGHUP, then exits as a shell expects it. Further signals change nothing:
 * a terminal and a wrapper such as npm often send the same one twice.
 */
export function stopOnSignal(stop: (signal: NodeJS.Signals) => Promise<void>): void {
  const codes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
  let stopping = false;
  for (const [signal, code] of Object.entries(codes)) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      void stop(signal as NodeJS.Signals).finally(() => process.exit(code));
    });
  }
}
