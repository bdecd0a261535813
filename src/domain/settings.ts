/**
 * The configuration of a mirror after it has been read, checked and given its defaults: what one journal revision
 * stores. Secrets stand in it by reference only (`${env:NAME}`, `${file:path}`).
 */

import type { RetentionSettings } from './maintenance.ts';
import type { ScheduleSettings, ScheduleTable } from './schedule.ts';
import type { SourceValue } from './source-row.ts';

export type Options = { readonly [key: string]: SourceValue };

/** How a field is made from a row. A bare string in YAML is `{column: <string>}`. */
export type FieldRule =
  | {
      readonly column: string;
      /** Applied in the order written, before hashing. */
      readonly normalize?: readonly Normalization[];
      readonly hash?: 'sha256';
      /** `text`: the exact text as a JSON string; `number`: a JSON number, refused where a double is not exact. */
      readonly as?: 'text' | 'number';
    }
  | { readonly value: string | number | boolean | null };

export type Normalization = 'trim' | 'lower' | 'email' | 'phone';

/** When a row gives this member; all conditions must hold. A row that fails one is excluded on purpose. */
export type Condition =
  | { readonly column: string; readonly is: 'null' | 'not_null' | 'empty' | 'not_empty' | 'true' | 'false' }
  | { readonly column: string; readonly equals: string }
  | { readonly column: string; readonly in: readonly string[] };

export interface MemberRule {
  readonly identity: { readonly [field: string]: FieldRule };
  readonly payload: { readonly [field: string]: FieldRule };
  readonly when: readonly Condition[];
}

/** A mapping: rules from YAML, or a TypeScript module that exports a `MirrorProjection`. */
export type MappingSettings =
  | { readonly kind: 'rules'; readonly members: readonly MemberRule[] }
  | { readonly kind: 'module'; readonly path: string; readonly export: string; readonly digest: string };

export interface SafetySettings {
  /** Largest share (0 to 1) of the membership before the run that it may remove; `null`: no limit of this kind. */
  readonly maxRemovalShare: number | null;
  /** Largest number of members that a run may remove; `null`: no limit of this kind. */
  readonly maxRemovals: number | null;
  /** What an empty desired set means while members are held. */
  readonly emptySnapshot: 'hold' | 'allow';
  /** Milliseconds that a parked run waits for an answer; then it counts as rejected. */
  readonly approvalDeadlineMs: number;
}

/** What a run does once the destination has rejected members (rule 5 of design.md). */
export type RejectionSettings =
  /** `continue`: everything else is delivered; then it holds, with no removals and no promotion. */
  | { readonly kind: 'stop' | 'continue' }
  /** Goes on to the end within a limit: a number of members, or a share (0 to 1) of those it desires or removes. */
  | { readonly kind: 'tolerate'; readonly max: number | null; readonly maxShare: number | null };

export interface MirrorSettings {
  readonly mirror: string;
  readonly strategy: 'snapshot-diff' | 'native-replace';
  readonly source: {
    readonly type: string;
    /** Name of the connection in `retl.yaml`; for messages only. */
    readonly connection: string;
    readonly connectionOptions: Options;
    readonly query: string;
    readonly key: readonly string[];
  };
  readonly mapping: MappingSettings;
  readonly destination: {
    readonly type: string;
    readonly connection: string;
    readonly connectionOptions: Options;
    readonly options: Options;
  };
  readonly baseline: {
    readonly kind: 'new-empty' | 'tracked' | 'replace';
    /** Who vouches, where the adapter cannot look; kept in the journal. */
    readonly attested: string | null;
  };
  readonly batch: {
    /** Members in one request, at most. */
    readonly rows: number;
    /** Bytes of one request's body, at most. */
    readonly bytes: number;
    /** Requests under way at once, at most. */
    readonly inFlight: number;
    /** Milliseconds that asynchronous work may take; then the run is blocked, and nothing is failed or sent again. */
    readonly pollDeadlineMs: number;
  };
  readonly safety: SafetySettings;
  readonly onRejection: RejectionSettings;
  /** Milliseconds after its last acceptance that an unchanged member is sent again; `null`: never. */
  readonly refreshAfterMs: number | null;
  /** Milliseconds after which a sealed, unfinished generation is closed instead of resumed. */
  readonly resumeMaxAgeMs: number;
}

/** Where the journal is. Both URLs are, or contain, secret references. */
export interface JournalSettings {
  /** Connection of the restricted runtime role, what workers and the CLI use. */
  readonly url: string;
  /** Connection of a person's own role, what the commands that only look use; `null`: they use `url`. */
  readonly readerUrl: string | null;
  /** Connection of the owner role, what `retl migrate` alone uses; `null` where migrations run elsewhere. */
  readonly ownerUrl: string | null;
  /** Name of the runtime role that migrations grant rights to; `null`: the user of `url`. */
  readonly runtimeRole: string | null;
}

/** How Temporal is reached; `null` leaves it to Temporal's environment configuration (profile file, `TEMPORAL_*`). */
export interface TemporalSettings {
  readonly profile: string | null;
  /** `host:port` of the frontend. */
  readonly address: string | null;
  readonly namespace: string | null;
  readonly taskQueue: string;
}

/** Where a worker's metrics go. Its texts are, or contain, secret references. */
export type MetricsSettings =
  | { readonly kind: 'off' }
  /** `address`: IP address and port that the worker answers scrapes on. */
  | { readonly kind: 'prometheus'; readonly address: string }
  | {
      readonly kind: 'otel';
      readonly url: string;
      /** OTLP over HTTP; otherwise over gRPC. */
      readonly http: boolean;
      readonly headers: { readonly [name: string]: string };
    };

/** One entry of `connections` in `retl.yaml`; a source or destination adapter of this type knows its options. */
export interface ConnectionSettings {
  readonly type: string;
  readonly options: Options;
}

export type EngineName = 'opensearch' | 'elasticsearch';

/** A search engine that an index lives in. */
export interface EngineSettings {
  readonly system: EngineName;
  /** Its URL and how it is entered; secrets by reference. */
  readonly options: Options;
}

/** One entry of `indexes` in `retl.yaml`. */
export interface IndexSettings {
  readonly name: string;
  readonly kind: 'membership-search' | 'membership-history';
  /** Of PostgreSQL, by reference; `null`: the journal's own database, or in a search engine. */
  readonly url: string | null;
  readonly schema: string;
  /** `null`: it lives in PostgreSQL. */
  readonly engine: EngineSettings | null;
  /** Whether compaction of the log is held back for it. */
  readonly holdsLog: boolean;
}

/** `artifacts` of `retl.yaml`: options with secrets by reference, judged by the store's own schema when it is opened. */
export interface ArtifactSettings {
  readonly current: Options;
  /** Read, and no longer written. */
  readonly former: readonly Options[];
}

/** `maintenance` of `retl.yaml`. */
export interface MaintenanceSettings extends RetentionSettings {
  /** `null`: it does not run by itself. */
  readonly schedule: ScheduleSettings | null;
}

/** The tags of each mirror, by its name, in the order written. */
export interface TagTable {
  readonly [mirror: string]: readonly string[];
}

/** A whole project: `retl.yaml` and every file of `mirrors/`, checked and with defaults. */
export interface ProjectSettings {
  readonly journal: JournalSettings;
  readonly temporal: TemporalSettings;
  readonly metrics: MetricsSettings;
  /** In order of their names. */
  readonly indexes: readonly IndexSettings[];
  /** Nobody follows or asks them any more: they are to be forgotten, and still say where they live. */
  readonly retiredIndexes: readonly IndexSettings[];
  readonly artifacts: ArtifactSettings;
  readonly maintenance: MaintenanceSettings;
  readonly connections: { readonly [name: string]: ConnectionSettings };
  /** In order of their names. */
  readonly mirrors: readonly MirrorSettings[];
  /** Beside the mirrors and not in them: when a mirror runs is no part of a run's revision. */
  readonly schedules: ScheduleTable;
  /** Beside the mirrors for the same reason: words by which people choose mirrors; every mirror has its list. */
  readonly tags: TagTable;
  /** The environment of `retl.yaml` that it was read for; `null`: none is chosen. */
  readonly environment: string | null;
  /** What `retl.yaml` gives defaults for, e.g. `safety.max_removals`: for people to look at. */
  readonly defaultKeys: readonly string[];
}
