/**
 * The canonical text of a mirror's settings: what the journal stores as a revision. Equal settings give equal bytes.
 * Secrets stand in it by reference only.
 */

import { z } from 'zod';
import { canonicalJson } from '../domain/canonical-json.ts';
import { RetlError } from '../domain/errors.ts';
import type { FieldRule, MirrorSettings } from '../domain/settings.ts';
import { jsonOptions } from './json-value.ts';

const FORMAT = 1;

const fieldRule: z.ZodType<FieldRule> = z.union([
  z.strictObject({
    column: z.string(),
    normalize: z.array(z.enum(['trim', 'lower', 'email', 'phone'])).exactOptional(),
    hash: z.literal('sha256').exactOptional(),
    as: z.enum(['text', 'number']).exactOptional(),
  }),
  z.strictObject({ value: z.union([z.string(), z.number(), z.boolean(), z.null()]) }),
]);

const condition = z.union([
  z.strictObject({
    column: z.string(),
    is: z.enum(['null', 'not_null', 'empty', 'not_empty', 'true', 'false']),
  }),
  z.strictObject({ column: z.string(), equals: z.string() }),
  z.strictObject({ column: z.string(), in: z.array(z.string()) }),
]);

const mapping = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('rules'),
    members: z.array(
      z.strictObject({
        identity: z.record(z.string(), fieldRule),
        payload: z.record(z.string(), fieldRule),
        when: z.array(condition),
      }),
    ),
  }),
  z.strictObject({ kind: z.literal('module'), path: z.string(), export: z.string(), digest: z.string() }),
]);

const settings = z.strictObject({
  mirror: z.string(),
  strategy: z.enum(['snapshot-diff', 'native-replace']),
  source: z.strictObject({
    type: z.string(),
    connection: z.string(),
    connectionOptions: jsonOptions,
    query: z.string(),
    key: z.array(z.string()),
  }),
  mapping,
  destination: z.strictObject({
    type: z.string(),
    connection: z.string(),
    connectionOptions: jsonOptions,
    options: jsonOptions,
  }),
  baseline: z.strictObject({
    kind: z.enum(['new-empty', 'tracked', 'replace']),
    attested: z.string().nullable(),
  }),
  batch: z.strictObject({ rows: z.int(), bytes: z.int(), inFlight: z.int(), pollDeadlineMs: z.int() }),
  safety: z.strictObject({
    maxRemovalShare: z.number().nullable(),
    maxRemovals: z.int().nullable(),
    emptySnapshot: z.enum(['hold', 'allow']),
    approvalDeadlineMs: z.int(),
  }),
  onRejection: z.union([
    z.strictObject({ kind: z.enum(['stop', 'continue']) }),
    z.strictObject({
      kind: z.literal('tolerate'),
      max: z.int().nullable(),
      maxShare: z.number().nullable(),
    }),
  ]),
  refreshAfterMs: z.int().nullable(),
  resumeMaxAgeMs: z.int(),
});

const revision = z.strictObject({ format: z.literal(FORMAT), settings });

/** Canonical JSON (RFC 8785) of the settings, with the number of its format. */
export function settingsText(mirror: MirrorSettings): string {
  // Through the schema, so that what is written can be read, and nothing else is written.
  return canonicalJson(revision.parse({ format: FORMAT, settings: mirror }));
}

/**
 * Reads what {@link settingsText} wrote.
 * @throws RetlError `config.revision` for anything else, for example a text of a newer release.
 */
export function parseSettings(text: string): MirrorSettings {
  const result = revision.safeParse(parsed(text));
  if (!result.success) throw new RetlError('config.revision', { places: placesOf(result.error) });
  return result.data.settings;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function placesOf(error: z.ZodError): readonly string[] {
  return [...new Set(error.issues.map((issue) => issue.path.map(String).join('.') || 'text'))];
}
