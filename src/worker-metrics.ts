/**
 * A worker's metrics: those of Temporal's SDK and, on the same meter, this project's own (domain/metrics.ts), on one endpoint.
 * The activities count what they do (activities/run-metrics.ts); how the mirrors stand is looked up in the journal here.
 */

import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MetricMeter } from '@temporalio/common';
import { Runtime, type Logger as SdkLogger, type TelemetryOptions } from '@temporalio/worker';
import { gauge } from './activities/instruments.ts';
import type { RunMetrics } from './activities/run-metrics.ts';
import type { Logger } from './destinations/port.ts';
import { RetlError } from './domain/errors.ts';
import { CLOSINGS } from './domain/metrics.ts';
import { OPEN_STATES } from './domain/run.ts';
import type { MetricsSettings } from './domain/settings.ts';
import { JournalError } from './journal/errors.ts';
import type { JournalPool } from './journal/runs.ts';
import { type MirrorSigns, readVitalSigns } from './journal/vital-signs.ts';
import type { IndexWatch } from './worker-index-metrics.ts';

/** In seconds: from a table in the same machine room to a provider that takes minutes. */
const DURATIONS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const histogramBucketOverrides = { retl_request_duration_seconds: DURATIONS };

/** Installs the SDK's runtime, once in a process. @throws RetlError `metrics.address`, `metrics.otel` */
export function installRuntime(settings: MetricsSettings, logger: SdkLogger): void {
  const metrics = exporterOf(settings);
  try {
    Runtime.install({
      logger,
      shutdownSignals: ['SIGINT', 'SIGTERM'],
      ...(metrics === null ? {} : { telemetryOptions: { metrics } }),
    });
  } catch (error) {
    if (settings.kind === 'prometheus') {
      throw new RetlError('metrics.address', { rule: whyNot(error), address: settings.address });
    }
    if (settings.kind === 'otel') throw new RetlError('metrics.otel', { rule: 'not-started' });
    throw error;
  }
}

function exporterOf(settings: MetricsSettings): NonNullable<TelemetryOptions['metrics']> | null {
  switch (settings.kind) {
    case 'off':
      return null;
    case 'prometheus':
      return { prometheus: { bindAddress: settings.address, histogramBucketOverrides } };
    case 'otel': {
      const { url, http, headers } = settings;
      // Prometheus names who it scrapes; a collector cannot tell one worker's counts from another's by itself.
      const globalTags = { worker: `${process.pid}@${hostname()}` };
      return { globalTags, otel: { url, http, headers: { ...headers }, histogramBucketOverrides } };
    }
  }
}

function whyNot(error: unknown): string {
  const words = error instanceof Error ? error.message : '';
  if (/in use/i.test(words)) return 'in-use';
  if (/cannot assign/i.test(words)) return 'not-of-this-machine';
  return /permission/i.test(words) ? 'not-permitted' : 'cannot-listen';
}

/** Between two looks at the journal, in ms, where nothing else is said. */
const LOOK_EVERY_MS = 15_000;

/**
 * Tells how the mirrors stand, by looking at the journal every few seconds. A journal that is away is told of by a gauge, and the
 * others keep what they said last.
 */
export class JournalWatch {
  readonly #up;
  readonly #head;
  readonly #earliest;
  readonly #mirrors: MirrorGauges;
  readonly #stop = new AbortController();
  #away = false;

  constructor(
    private readonly journal: JournalPool,
    meter: MetricMeter,
    private readonly metrics: RunMetrics,
    private readonly logger: Logger,
    private readonly everyMs = LOOK_EVERY_MS,
    private readonly indexes: Pick<IndexWatch, 'look'> | null = null,
  ) {
    this.#up = gauge(meter, 'retl_journal_up');
    this.#head = gauge(meter, 'retl_log_head_position');
    this.#earliest = gauge(meter, 'retl_log_earliest_position');
    this.#mirrors = new MirrorGauges(meter);
  }

  /** Begins, and goes on until the function that it gives back is called; that one resolves when nothing is asked any more. */
  start(): () => Promise<void> {
    const watching = this.#watch();
    return async () => {
      this.#stop.abort();
      await watching;
    };
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    // An index whose system is slow to answer keeps no mirror from being told of.
    let besides: Promise<void> | undefined;
    while (!signal.aborted) {
      await this.look();
      besides = this.indexes?.look();
      await sleep(this.everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
    await besides;
  }

  /** Looks once. Never throws: metrics are no reason for a worker to end. */
  async look(): Promise<void> {
    try {
      const signs = await readVitalSigns(this.journal);
      this.#head(Number(signs.head), {});
      this.#earliest(Number(signs.earliest), {});
      for (const mirror of signs.mirrors) {
        this.metrics.begin(mirror.mirror);
        this.#mirrors.tell(mirror);
      }
      this.#up(1, {});
      this.#away = false;
    } catch (error) {
      this.#up(0, {});
      if (!this.#away)
        this.logger.warn('the journal cannot be looked at, for metrics', { why: kindOf(error) });
      this.#away = true;
    }
  }
}

function kindOf(error: unknown): string {
  return error instanceof JournalError ? error.kind : 'defect';
}

class MirrorGauges {
  readonly #held;
  readonly #open;
  readonly #openWaits;
  readonly #openAge;
  readonly #sinceCompleted;
  readonly #outcome;
  readonly #unresolved;
  readonly #unresolvedAge;

  constructor(meter: MetricMeter) {
    this.#held = gauge(meter, 'retl_members_held');
    this.#open = gauge(meter, 'retl_open_run');
    this.#openWaits = gauge(meter, 'retl_open_run_waits_seconds');
    this.#openAge = gauge(meter, 'retl_open_run_age_seconds');
    this.#sinceCompleted = gauge(meter, 'retl_last_completed_age_seconds');
    this.#outcome = gauge(meter, 'retl_last_outcome');
    this.#unresolved = gauge(meter, 'retl_unresolved_batches');
    this.#unresolvedAge = gauge(meter, 'retl_unresolved_batch_age_seconds');
  }

  /** Every state and outcome is told each time, for what is not said again would stand as it was. */
  tell(signs: MirrorSigns): void {
    const { mirror, open } = signs;
    this.#held(signs.held, { mirror });
    for (const state of OPEN_STATES) this.#open(open?.state === state ? 1 : 0, { mirror, state });
    this.#openWaits(open?.waits ?? 0, { mirror });
    this.#openAge(open?.age ?? 0, { mirror });
    this.#sinceCompleted(signs.sinceCompleted, { mirror });
    for (const outcome of CLOSINGS) this.#outcome(signs.lastOutcome === outcome ? 1 : 0, { mirror, outcome });
    for (const state of ['unknown', 'staged'] as const) {
      this.#unresolved(signs[state].batches, { mirror, state });
      this.#unresolvedAge(signs[state].age, { mirror, state });
    }
  }
}
