/** Gives a checked mirror file its defaults and its plain form: from what people write to `MirrorSettings`. */

import type {
  Condition,
  FieldRule,
  MappingSettings,
  MemberRule,
  MirrorSettings,
  Options,
  RejectionSettings,
  SafetySettings,
} from '../domain/settings.ts';
import type { ConditionInput, FieldInput, MemberInput, MirrorInputFile } from './mirror-schema.ts';
import { parseDuration, parseShare, parseSize } from './quantities.ts';
import { DEFAULTS } from './section-schemas.ts';

/** What the mirror's file refers to. */
export interface Resolved {
  readonly mirror: string;
  readonly source: { readonly type: string; readonly options: Options };
  readonly destination: {
    readonly type: string;
    readonly connectionOptions: Options;
    readonly options: Options;
  };
  /** The mapping's module; `null` where `members` is used. */
  readonly module: Extract<MappingSettings, { kind: 'module' }> | null;
}

/** `input` must have passed `mirrorInput`. */
export function mirrorSettings(input: MirrorInputFile, resolved: Resolved): MirrorSettings {
  return {
    mirror: resolved.mirror,
    strategy: strategyOf(input),
    source: {
      type: resolved.source.type,
      connection: input.source.connection,
      connectionOptions: resolved.source.options,
      query: input.source.query,
      key: listOf(input.source.key),
    },
    mapping: resolved.module ?? { kind: 'rules', members: listOf(input.members ?? []).map(memberRule) },
    destination: { connection: input.destination.connection, ...resolved.destination },
    baseline: baselineOf(input),
    batch: batchOf(input),
    safety: safetyOf(input),
    onRejection: rejectionsOf(input),
    refreshAfterMs: input.refresh_after === undefined ? null : checked(parseDuration(input.refresh_after)),
    resumeMaxAgeMs: checked(parseDuration(input.resume_max_age ?? DEFAULTS.resume_max_age)),
  };
}

export function strategyOf(input: MirrorInputFile): MirrorSettings['strategy'] {
  return input.strategy ?? 'snapshot-diff';
}

export function baselineOf(input: MirrorInputFile): MirrorSettings['baseline'] {
  const written = input.baseline ?? (strategyOf(input) === 'native-replace' ? 'replace' : 'new-empty');
  return typeof written === 'string'
    ? { kind: written, attested: null }
    : { kind: written.kind, attested: written.attested ?? null };
}

function batchOf(input: MirrorInputFile): MirrorSettings['batch'] {
  const { batch } = DEFAULTS;
  return {
    rows: input.batch?.rows ?? batch.rows,
    bytes: checked(parseSize(input.batch?.bytes ?? batch.bytes)),
    inFlight: input.batch?.in_flight ?? batch.in_flight,
    pollDeadlineMs: checked(parseDuration(input.batch?.poll_deadline ?? batch.poll_deadline)),
  };
}

function safetyOf(input: MirrorInputFile): SafetySettings {
  const { share, count } = removalLimits(input.safety?.max_removals ?? DEFAULTS.safety.max_removals);
  return {
    maxRemovalShare: share === undefined ? null : checked(parseShare(share)),
    maxRemovals: count ?? null,
    emptySnapshot: input.safety?.empty_snapshot ?? DEFAULTS.safety.empty_snapshot,
    approvalDeadlineMs: checked(
      parseDuration(input.safety?.approval_deadline ?? DEFAULTS.safety.approval_deadline),
    ),
  };
}

export function rejectionsOf(input: MirrorInputFile): RejectionSettings {
  const written = input.on_rejection ?? DEFAULTS.on_rejection;
  if (typeof written === 'string') return { kind: written };
  const { max } = written.tolerate;
  return typeof max === 'number'
    ? { kind: 'tolerate', max, maxShare: null }
    : { kind: 'tolerate', max: null, maxShare: checked(parseShare(max)) };
}

type RemovalLimits = NonNullable<NonNullable<MirrorInputFile['safety']>['max_removals']>;

function removalLimits(limit: RemovalLimits): { share?: string | undefined; count?: number | undefined } {
  if (typeof limit === 'string') return { share: limit };
  return typeof limit === 'number' ? { count: limit } : limit;
}

function memberRule(input: MemberInput): MemberRule {
  return {
    identity: fieldRules(input.identity),
    payload: fieldRules(input.payload ?? {}),
    when: listOf(input.when ?? []).map(condition),
  };
}

function fieldRules(fields: { readonly [name: string]: FieldInput }): { readonly [name: string]: FieldRule } {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, fieldRule(field)]));
}

function fieldRule(field: FieldInput): FieldRule {
  if (typeof field === 'string') return { column: field };
  if ('value' in field) return { value: field.value };
  return {
    column: field.column,
    ...(field.normalize === undefined ? {} : { normalize: listOf(field.normalize) }),
    ...(field.hash === undefined ? {} : { hash: field.hash }),
    ...(field.as === undefined ? {} : { as: field.as }),
  };
}

function condition(input: ConditionInput): Condition {
  if ('equals' in input) return { column: input.column, equals: String(input.equals) };
  if ('in' in input) return { column: input.column, in: input.in.map(String) };
  return { column: input.column, is: isWord(input.is) };
}

/** YAML reads `is: null`, `is: true` and `is: false` as values; they mean the words. */
function isWord(
  is: Extract<ConditionInput, { is: unknown }>['is'],
): Extract<Condition, { is: unknown }>['is'] {
  if (is === null) return 'null';
  if (is === true) return 'true';
  return is === false ? 'false' : is;
}

/** One or many, as a list. */
export function listOf<T>(value: T | readonly T[]): readonly T[] {
  return isList(value) ? value : [value];
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}

function checked(value: number | null): number {
  if (value === null) throw new Error('a quantity was not checked before it was read');
  return value;
}
