/** `indexes` of retl.yaml: what is derived from the log. */

import { z } from 'zod';
import { INDEX_NAME } from '../domain/index-messages.ts';
import type { IndexSettings } from '../domain/settings.ts';
import { REFERENCE_FORMS } from './secrets.ts';

const DEFAULT_SCHEMA = 'retl_index';
const KINDS = ['membership-search', 'membership-history'] as const;

const indexInput = z.strictObject({
  kind: z.enum(KINDS).describe('membership-search or membership-history'),
  url: z
    .string()
    .min(1)
    .describe(
      `PostgreSQL URL of the database that it lives in, as ${REFERENCE_FORMS}; the journal’s own where left out`,
    )
    .optional(),
  schema: z
    .string()
    .min(1)
    .max(63)
    .regex(/^[^\s"$]+$/)
    .meta({ description: 'name of the PostgreSQL schema that it lives in', default: DEFAULT_SCHEMA })
    .optional(),
  hold_log: z
    .boolean()
    .meta({
      description:
        'true or false: whether the log is kept from compaction, so that a new build has all of it; true for membership-history, false for membership-search where left out',
    })
    .optional(),
});

export const indexesInput = z
  .record(
    z
      .string()
      .regex(INDEX_NAME)
      .describe('a name of lower-case letters, digits and `-`, at most 63, not beginning with `-`'),
    indexInput.describe('{kind, url, schema, hold_log}'),
  )
  .describe('what is derived from the log, by name');

export function indexSettings(input: z.infer<typeof indexesInput> | undefined): readonly IndexSettings[] {
  return Object.entries(input ?? {})
    .map(([name, { kind, url, schema, hold_log }]) => ({
      name,
      kind,
      url: url ?? null,
      schema: schema ?? DEFAULT_SCHEMA,
      holdsLog: hold_log ?? kind === 'membership-history',
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
