/**
 * What a file of `mirrors/` may hold, as people write it. Descriptions say what is valid at their place: they are the
 * remedies of errors and what editors show. There are no transforms here: mirror-settings.ts gives the settings.
 */

import { z } from 'zod';
import { MAX_MEMBERS_PER_ROW } from '../domain/member.ts';
import { scheduleInput } from './schedule-schema.ts';
import { sections } from './section-schemas.ts';

/** Name of a mirror: its file's name without `.yaml`. */
export const MIRROR_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

function oneOrMany<T extends z.ZodType>(item: T, description: string, max = 1000) {
  return z.union([item, z.array(item).min(1).max(max)]).describe(description);
}

const column = z.string().min(1).describe('name of a column that the query returns');

const normalization = z.enum(['trim', 'lower', 'email', 'phone']);

const columnField = z
  .strictObject({
    column,
    normalize: oneOrMany(
      normalization,
      'trim, lower, email or phone, or a list of them, applied in that order before hashing',
    ).optional(),
    hash: z.literal('sha256').describe('sha256').optional(),
    as: z
      .enum(['text', 'number'])
      .describe(
        'text (the exact text, as a JSON string) or number (a JSON number, refused where it would be rounded)',
      )
      .optional(),
  })
  .refine((field) => field.hash === undefined || field.as !== 'number', {
    path: ['as'],
    error: 'A hash is text: `hash` and `as: number` exclude one another.',
  });

const valueField = z.strictObject({
  value: z
    .union([z.string(), z.number(), z.boolean(), z.null()])
    .describe('a constant: text, number, true, false or null'),
});

export const fieldInput = z
  .union([column, columnField, valueField])
  .describe('a column’s name, {column, normalize, hash, as}, or {value: constant}');

const compared = z
  .union([z.string(), z.int()])
  .describe('the column’s exact text, in quotes where YAML would read something else');

const conditionInput = z
  .union([
    z.strictObject({
      column,
      is: z
        .union([z.enum(['null', 'not_null', 'empty', 'not_empty', 'true', 'false']), z.boolean(), z.null()])
        .describe('null, not_null, empty, not_empty, true or false'),
    }),
    z.strictObject({ column, equals: compared }),
    z.strictObject({ column, in: z.array(compared).min(1).max(1000).describe('a list of texts') }),
  ])
  .describe('{column, is}, {column, equals} or {column, in}');

const memberInput = z.strictObject({
  identity: z
    .record(z.string().min(1), fieldInput)
    .refine((fields) => Object.keys(fields).length > 0, 'An identity needs at least one field.')
    .describe('the fields that name the member at the destination, each from a column'),
  payload: z
    .record(z.string().min(1), fieldInput)
    .describe('the other fields of an upsert, each from a column')
    .optional(),
  when: oneOrMany(
    conditionInput,
    'one condition or a list of conditions ({column, is}, {column, equals} or {column, in}); a row that fails one is left out on purpose',
    64,
  ).optional(),
});

const baselineKind = z.enum(['new-empty', 'tracked', 'replace']);

const baseline = z
  .union([
    baselineKind,
    z.strictObject({
      kind: baselineKind.describe('new-empty, tracked or replace'),
      attested: z
        .string()
        .min(1)
        .max(1000)
        .describe('who vouches that this is so, and why, where the destination cannot be looked into')
        .optional(),
    }),
  ])
  .describe('new-empty, tracked or replace, or {kind: new-empty, attested: "who and why"}');

const source = z.strictObject({
  connection: z.string().min(1).describe('a name under `connections` in retl.yaml'),
  query: z
    .string()
    .refine((text) => text.trim() !== '', 'The query is empty.')
    .describe('the SQL query whose rows are mirrored'),
  key: oneOrMany(column, 'the column, or list of columns, that together name one row', 32),
});

/** `connection` and `type` are ours; everything else is judged by the adapter of that type. */
export const destinationInput = z.looseObject({
  connection: z.string().min(1).describe('a name under `connections` in retl.yaml'),
  type: z.string().min(1).describe('the destination’s type; the connection’s type where left out').optional(),
});

export const mirrorInput = z
  .strictObject({
    strategy: z
      .enum(['snapshot-diff', 'native-replace'])
      .meta({ description: 'snapshot-diff or native-replace', default: 'snapshot-diff' })
      .optional(),
    source: source.describe('what is read: {connection, query, key}'),
    members: oneOrMany(
      memberInput,
      'what a row means to the destination: {identity, payload, when}, or a list of such members',
      MAX_MEMBERS_PER_ROW,
    ).optional(),
    mapping: z
      .strictObject({
        module: z
          .string()
          .min(1)
          .describe('path of a TypeScript or JavaScript module, relative to the mirror’s file'),
        export: z
          .string()
          .min(1)
          .meta({ description: 'name of the export that holds the MirrorProjection', default: 'default' })
          .optional(),
      })
      .describe('a mapping written in TypeScript, in place of `members`: {module: ./vip.ts, export: default}')
      .optional(),
    destination: destinationInput.describe(
      'what is mirrored into: {connection, type} and the options of that type',
    ),
    baseline: baseline.optional(),
    ...sections,
    schedule: scheduleInput
      .describe(
        'when it runs by itself: {every: 15m} or {cron: "0 6 * * 1-5", time_zone}, with jitter, overlap, catch_up, pause_on_failure',
      )
      .optional(),
  })
  .refine((mirror) => (mirror.members === undefined) !== (mirror.mapping === undefined), {
    error: 'A mirror needs either `members` or `mapping`, and not both.',
    when: ({ value }) => typeof value === 'object' && value !== null && !Array.isArray(value),
  });

export type MirrorInputFile = z.infer<typeof mirrorInput>;
export type FieldInput = z.infer<typeof fieldInput>;
export type ConditionInput = z.infer<typeof conditionInput>;
export type MemberInput = z.infer<typeof memberInput>;
