/** Binds a revision's settings to adapters: secrets put in, schemas applied, at the last moment before use. */

import { createHash } from 'node:crypto';
import type { Capabilities, DestinationAdapter } from '../destinations/port.ts';
import { RetlError } from '../domain/errors.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { RouteHashes } from '../journal/admission.ts';
import type { MemberForm } from '../planning/row-reader.ts';
import type { SourceAdapter } from '../sources/port.ts';
import type { Dependencies } from './deps.ts';

export interface BoundDestination {
  readonly adapter: DestinationAdapter;
  readonly connection: unknown;
  readonly options: unknown;
  readonly capabilities: Capabilities;
  readonly targetKey: string;
  /** SHA-256 of what else decides where requests arrive; `null`: nothing does. */
  readonly route: RouteHashes | null;
  /** Keys of other targets that its removals would go into. */
  readonly removesFrom: readonly string[];
  /** What besides a payload decides how it arrives; empty: nothing. Part of the payload's hash. */
  readonly writeForm: string;
  /** What an identity means at the target, beyond its own text; empty: nothing. Fixed while it holds members. */
  readonly identityForm: string;
  /** The mirror's limits, within the provider's. */
  readonly limits: { readonly rows: number; readonly bytes: number; readonly inFlight: number };
}

/** @throws RetlError `config.invalid`, `config.secret`, `destination.baseline-unsupported` */
export function bindDestination(
  deps: Pick<Dependencies, 'destinations' | 'configuration'>,
  settings: MirrorSettings,
): BoundDestination {
  const d = settings.destination;
  const adapter = deps.destinations.find((a) => a.type === d.type);
  if (adapter === undefined) throw new RetlError('config.invalid', { place: 'destination.type' });
  const connection = parse(
    adapter.connectionSchema,
    deps.configuration.resolve(d.connectionOptions),
    `connections.${d.connection}`,
  );
  const options = parse(adapter.optionsSchema, d.options, 'destination');
  const capabilities = adapter.capabilities(connection, options);
  const route = adapter.route?.(connection, options, d.connectionOptions);
  if (!canMirror(capabilities, settings)) {
    const { strategies } = capabilities;
    throw new RetlError('destination.baseline-unsupported', { type: adapter.type, strategies });
  }
  return {
    adapter,
    connection,
    options,
    capabilities,
    targetKey: adapter.targetKey(connection, options),
    route:
      route === undefined
        ? null
        : { credentials: sha256Bytes(route.credentials), removals: sha256Bytes(route.removals) },
    removesFrom: route?.removesFrom ?? [],
    writeForm: adapter.writeForm?.(options) ?? '',
    identityForm: adapter.identityForm?.(options, identityFields(settings)) ?? '',
    limits: {
      rows: Math.min(settings.batch.rows, capabilities.maxRows),
      bytes: Math.min(settings.batch.bytes, capabilities.maxBytes),
      inFlight: Math.min(settings.batch.inFlight, capabilities.maxInFlight),
    },
  };
}

/** `null`: the mapping is a module. */
function identityFields({ mapping }: Pick<MirrorSettings, 'mapping'>): readonly string[] | null {
  return mapping.kind === 'rules' ? Object.keys(mapping.members[0]?.identity ?? {}) : null;
}

/**
 * Strategy, baseline and adapter must fit: what cannot be removed singly, or becomes real at the finish only, cannot be
 * diffed against.
 */
function canMirror(
  { strategies, explicitRemoval, visible }: Capabilities,
  { strategy, baseline }: Pick<MirrorSettings, 'strategy' | 'baseline'>,
): boolean {
  if (!strategies.includes(strategy)) return false;
  if (strategy === 'native-replace') return baseline.kind === 'replace';
  return baseline.kind !== 'replace' && explicitRemoval && visible === 'on_accept';
}

/** How the members of a snapshot are folded, hashed and validated for it. */
export function memberForm({ adapter, options, capabilities, writeForm }: BoundDestination): MemberForm {
  const { identityFolding } = capabilities;
  return { identityFolding, writeForm, payloadSchemas: adapter.payloadSchemas?.(options) };
}

export interface BoundSource {
  readonly adapter: SourceAdapter;
  readonly connection: unknown;
}

/** @throws RetlError `config.invalid`, `config.secret` */
export function bindSource(
  deps: Pick<Dependencies, 'sources' | 'configuration'>,
  settings: MirrorSettings,
): BoundSource {
  const s = settings.source;
  const adapter = deps.sources.find((a) => a.type === s.type);
  if (adapter === undefined) throw new RetlError('config.invalid', { place: 'source.connection' });
  const resolved = deps.configuration.resolve(s.connectionOptions);
  return { adapter, connection: parse(adapter.connectionSchema, resolved, `connections.${s.connection}`) };
}

interface Schema {
  safeParse(
    value: unknown,
  ):
    | { success: true; data: unknown }
    | { success: false; error: { issues: readonly { path: readonly PropertyKey[] }[] } };
}

/** Names the fields that are wrong, never what they hold. */
function parse(schema: Schema, value: unknown, place: string): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const fields = result.error.issues.map((issue) => issue.path.map(String).join('.'));
  throw new RetlError('config.invalid', { place, fields });
}

/** SHA-256 of the UTF-8 bytes of a text. */
export function sha256Bytes(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
