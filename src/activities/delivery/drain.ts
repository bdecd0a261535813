/**
 * Requests in flight finish and are recorded when a run is told to stop; past the drain limit the adapter is told to give
 * up, and what it cannot say is unknown (design.md section 4, Control).
 */

/** How long requests in flight may still finish after a stop, in ms. */
export const DRAIN_MS = 30_000;

export class DrainLimit {
  #timer: NodeJS.Timeout | undefined;
  readonly #begin: () => void;

  constructor(
    private readonly stop: AbortSignal,
    giveUp: () => void,
    ms = DRAIN_MS,
  ) {
    this.#begin = () => {
      this.#timer ??= setTimeout(giveUp, ms);
    };
    if (stop.aborted) this.#begin();
    else stop.addEventListener('abort', this.#begin, { once: true });
  }

  end(): void {
    clearTimeout(this.#timer);
    this.stop.removeEventListener('abort', this.#begin);
  }
}
