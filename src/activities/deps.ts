/** What activities are made from: `createActivities(deps)` binds them, worker.ts is the only place that builds them. */

import type { DestinationAdapter, Logger } from '../destinations/port.ts';
import type { MirrorProjection } from '../domain/member.ts';
import type { MappingSettings, MirrorSettings, Options } from '../domain/settings.ts';
import type { JournalPool } from '../journal/runs.ts';
import type { SourceAdapter } from '../sources/port.ts';
import type { RunMetrics } from './run-metrics.ts';

/** Reads configuration where the worker runs. */
export interface Configuration {
  /** The mirror as it is configured now. @throws RetlError `config.unknown-mirror`, `config.invalid`, … */
  mirror(name: string): Promise<MirrorSettings>;
  /** Canonical text of the settings: what the journal keeps as a revision. */
  text(settings: MirrorSettings): string;
  /** @throws RetlError where the text is not a revision of this version. */
  parse(text: string): MirrorSettings;
  /** Puts secrets in the place of their references. @throws RetlError `config.secret` */
  resolve(options: Options): Options;
  /** Loads a mapping written in TypeScript, and checks that it is the one of the revision. @throws RetlError */
  projection(mapping: Extract<MappingSettings, { kind: 'module' }>): Promise<MirrorProjection>;
}

export interface Dependencies {
  readonly journal: JournalPool;
  readonly sources: readonly SourceAdapter[];
  readonly destinations: readonly DestinationAdapter[];
  readonly configuration: Configuration;
  readonly logger: Logger;
  readonly metrics: RunMetrics;
  /** Called when a run has been promoted, for those who follow the log; it never fails. */
  readonly committed?: () => Promise<void>;
  /** Id of the Temporal cluster that the worker polls; `''` where it cannot be asked. */
  readonly cluster: string;
  /** Whether RetlMirror, RetlPhase and RetlOutcome are registered; without them the workflow does without. */
  readonly searchAttributes: boolean;
}
