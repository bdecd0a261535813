/** How indexes stand beside the log, for metrics: each is asked itself, every few seconds, by every worker. */

import type { MetricMeter } from '@temporalio/common';
import type { IndexDependencies } from './activities/index-follow.ts';
import { gauge } from './activities/instruments.ts';
import type { Logger } from './destinations/port.ts';
import { RetlError } from './domain/errors.ts';
import { logPosition } from './domain/ids.ts';
import { indexStatus } from './indexing/index-status.ts';
import { type LogLag, logLag } from './journal/log-reader.ts';

export class IndexWatch {
  readonly #up;
  readonly #positions;
  readonly #seconds;
  /** Those that are down, and why. */
  readonly #down = new Map<string, string>();
  #looking = false;

  constructor(
    private readonly deps: Pick<IndexDependencies, 'names' | 'open' | 'replay'>,
    meter: MetricMeter,
    private readonly logger: Logger,
  ) {
    this.#up = gauge(meter, 'retl_index_up');
    this.#positions = gauge(meter, 'retl_index_lag_positions');
    this.#seconds = gauge(meter, 'retl_index_lag_seconds');
  }

  /** Looks once; where a system is slow to answer, the next look is left out. Never throws. */
  async look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      // One after the other: none is in a hurry, and they share the journal's few spare connections.
      for (const index of await this.deps.names()) await this.#lookAt(index);
    } catch {
      // The configuration cannot be read: whoever runs something is told.
    } finally {
      this.#looking = false;
    }
  }

  async #lookAt(index: string): Promise<void> {
    try {
      const indexer = await this.deps.open(index);
      const { builds } = await indexStatus(this.deps.replay.journal, indexer).finally(() => indexer.close());
      const live = builds.find(({ state }) => state === 'live');
      const building = builds.find(({ state }) => state === 'building');
      // What is not built has all of the log to go.
      const behind = live === undefined ? await logLag(this.deps.replay.journal, logPosition(0)) : live.lag;
      this.#tell(index, 'live', behind);
      this.#tell(index, 'building', building === undefined ? { positions: 0n, ms: 0 } : building.lag);
      const refused = builds.find((build) => build.refused !== null)?.refused?.code;
      if (refused !== undefined) return this.#isDown(index, refused);
      this.#up(1, { index });
      this.#down.delete(index);
    } catch (error) {
      this.#isDown(index, error instanceof RetlError ? error.code : 'defect');
    }
  }

  #isDown(index: string, why: string): void {
    this.#up(0, { index });
    if (this.#down.get(index) !== why)
      this.logger.warn('an index is away or refused, and down for metrics', { index, why });
    this.#down.set(index, why);
  }

  /** `null`: it is refused, and stands as it was. */
  #tell(index: string, build: 'live' | 'building', lag: LogLag | null): void {
    if (lag === null) return;
    this.#positions(Number(lag.positions), { index, build });
    this.#seconds(lag.ms / 1_000, { index, build });
  }
}
