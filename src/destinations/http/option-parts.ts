/** Parts that several of the `http` options are made of. */

import { z } from 'zod';
import { isJsonPointer } from './json-pointer.ts';
import { isPath } from './url.ts';

export const path = z
  .string()
  .refine(
    isPath,
    'must begin with one `/`, be percent-encoded ASCII, and have placeholders like `{email_sha256}`',
  );
export const pointer = z
  .string()
  .refine(isJsonPointer, 'must be a JSON Pointer such as `/results`, or empty');
export const scalar = z.union([z.string(), z.number(), z.boolean()]);
export const status = z.int().min(200).max(599);

export const perRow = z.strictObject({
  list: pointer.describe('where the reply lists its rows'),
  id: z.string().min(1).describe('the field of a listed row that says which operation it speaks of'),
  match: z.string().min(1).describe('what that field repeats: the one identity field, or `operation_id`'),
  ok: z.strictObject({
    field: z.string().min(1).describe('the field of a listed row that says yes or no'),
    values: z.array(scalar).min(1).describe('its values that mean accepted'),
    rejected: z
      .array(scalar)
      .min(1)
      .optional()
      .describe(
        'its values that mean rejected, any other leaving the request unknown; not given: all but states in between',
      ),
  }),
  reason: z.string().min(1).optional().describe('the field with the reason of a rejected row'),
  statuses: z.array(status).min(1).default([200, 201, 207]),
});
export type PerRow = z.output<typeof perRow>;

export const perRequest = z.strictObject({
  statuses: z.array(status).min(1).default([200, 201, 204]),
  expect: z
    .record(pointer, scalar)
    .default({})
    .describe('what the reply must say, by JSON Pointer; `rows` stands for the number of operations sent'),
});
export type PerRequest = z.output<typeof perRequest>;
