/** What a mirror says of its API: requests, bodies, and what answers mean. */

import { z } from 'zod';
import { headerName, headers } from './header-schema.ts';
import { isJsonPointer } from './json-pointer.ts';
import { isPath, placeholders } from './url.ts';

const path = z
  .string()
  .refine(
    isPath,
    'must begin with one `/`, be percent-encoded ASCII, and have placeholders like `{email_sha256}`',
  );
const pointer = z.string().refine(isJsonPointer, 'must be a JSON Pointer such as `/results`, or empty');
const scalar = z.union([z.string(), z.number(), z.boolean()]);
const status = z.int().min(200).max(599);

/**
 * How operations stand in a body. `array`: `[…]`; `ndjson`: one a line; `single`: the one operation itself; `none`: no
 * body; `wrap`: `{<fields>, "<wrap>": […]}`.
 */
const body = z.union(
  [
    z.enum(['array', 'ndjson', 'single', 'none']),
    z
      .strictObject({ wrap: z.string().min(1), fields: z.record(z.string(), z.json()).default({}) })
      .refine(
        (shape) => !Object.hasOwn(shape.fields, shape.wrap),
        'a constant field has the name of the list',
      ),
  ],
  { error: 'must be `array`, `ndjson`, `single`, `none`, or `{wrap: <name>, fields: {…}}`' },
);
export type BodyShape = z.output<typeof body>;

const request = <Method extends string>(methods: readonly [Method, ...Method[]]) =>
  z.strictObject({
    method: z.enum(methods),
    path,
    headers: headers.default({}),
    body: body.optional(),
    accepts: z
      .array(status)
      .min(1)
      .optional()
      .describe('statuses that accept, in place of those of `outcomes`; 404 may stand here for a removal'),
  });

const perRow = z.strictObject({
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

const perRequest = z.strictObject({
  statuses: z.array(status).min(1).default([200, 201, 204]),
  expect: z
    .record(pointer, scalar)
    .default({})
    .describe('what the reply must say, by JSON Pointer; `rows` stands for the number of operations sent'),
});
export type PerRequest = z.output<typeof perRequest>;

/**
 * What an accepting status means. Not given: the whole request is accepted where each part of the reply is understood
 * and agrees (agreement.ts). `per_request`: the user vouches that such a status accepts every operation.
 */
const outcomes = z.union(
  [
    z.literal('per_request').transform(() => ({ per_request: perRequest.parse({}) })),
    z.strictObject({ per_request: perRequest }),
    z.strictObject({ per_row: perRow }),
  ],
  { error: 'must be `per_request`, `{per_request: {…}}` or `{per_row: {list, id, match, ok}}`' },
);

/** Proven not applied, and worth another try. */
const NOTHING_APPLIED = [413, 429];
/** Proven not applied, and the same request can never succeed. */
const REFUSED = [400, 404, 405, 406, 410, 411, 414, 415, 422, 431];

const ACCEPTABLE_FOR_REMOVAL = new Set([404, 410]);

export const httpOptionsSchema = z
  .strictObject({
    upsert: request(['POST', 'PUT', 'PATCH']),
    remove: request(['DELETE', 'POST', 'PUT', 'PATCH']),
    finish: z
      .strictObject({
        method: z.enum(['POST', 'PUT', 'PATCH']),
        path,
        headers: headers.default({}),
        body: z.union([z.enum(['summary', 'none']), z.strictObject({ json: z.json() })]).default('summary'),
        accepts: z.array(status).min(1).optional(),
        idempotent: z
          .boolean()
          .default(false)
          .describe('true or false; true says that the same finish twice equals once'),
      })
      .optional()
      .describe('a request that ends each run, with its generation, number of members and digest'),
    body: body
      .optional()
      .describe(
        'array, ndjson, single, none, or {wrap: <name>}: the body of both requests, where they do not say their own',
      ),
    operation_id: z
      .string()
      .min(1)
      .optional()
      .describe('the name of a field that is added to each operation sent and holds its id'),
    idempotency: z
      .strictObject({ header: headerName })
      .optional()
      .describe('the header that carries a key, the same for each sending of the same bytes'),
    idempotent: z
      .boolean()
      .default(false)
      .describe(
        'true or false; true is your word that the same request twice equals once: after a lost answer it is sent again',
      ),
    outcomes: outcomes
      .optional()
      .describe(
        'per_request, or {per_request: …}, or {per_row: …}: what an accepting status means; not given: all is accepted where all of the reply agrees',
      ),
    nothing_applied: z
      .array(status)
      .default(NOTHING_APPLIED)
      .describe('statuses that prove that nothing was applied, and are worth another try'),
    refused: z
      .array(status)
      .default(REFUSED)
      .describe('statuses that prove that nothing was applied, and never will be'),
    job_id: pointer.default('/job_id').describe('where a 202 names its job: staged, never accepted'),
    verify_empty: z
      .strictObject({
        method: z.literal('GET').default('GET'),
        path,
        headers: headers.default({}),
        count: pointer.optional(),
        list: pointer.optional(),
      })
      .refine(
        (read) => (read.count === undefined) !== (read.list === undefined),
        'give one of `count` and `list`',
      )
      .refine((read) => placeholders(read.path).length === 0, 'its path must have no placeholders')
      .optional()
      .describe('a read that shows whether the target is empty, by a count or a list in its reply'),
    identity_folding: z
      .array(z.enum(['case', 'nfc', 'nfkc']))
      .default([])
      .describe('a list of case, nfc, nfkc: what the API ignores when it compares identities'),
    asynchronous: z
      .never({ error: 'asynchronous jobs are not supported yet: this API must answer when the work is done' })
      .optional(),
  })
  .superRefine((options, context) => {
    for (const [path, message] of optionProblems(options))
      context.addIssue({ code: 'custom', path: [...path], message });
  });

export type HttpOptions = z.output<typeof httpOptionsSchema>;
type OptionsShape = Omit<HttpOptions, 'asynchronous'>;

function* optionProblems(options: OptionsShape): Generator<[readonly PropertyKey[], string]> {
  for (const action of ['upsert', 'remove'] as const) {
    const shape = bodyShape(options, action);
    const templated = placeholders(options[action].path).length > 0;
    if (templated && shape !== 'single' && shape !== 'none')
      yield [[action, 'body'], 'a path with placeholders names one member: its body is `single` or `none`'];
    if (!templated && shape === 'none')
      yield [[action, 'body'], 'without a body and without placeholders, the request would name no member'];
    if (shape === 'none' && options[action].method !== 'DELETE')
      yield [[action, 'body'], 'only DELETE may go without a body'];
    for (const code of options[action].accepts ?? [])
      if (code >= 300 && !(action === 'remove' && ACCEPTABLE_FOR_REMOVAL.has(code)))
        yield [[action, 'accepts'], 'may hold 2xx statuses, and for `remove` also 404 and 410'];
  }
  if (options.finish !== undefined && placeholders(options.finish.path).length > 0)
    yield [['finish', 'path'], 'must have no placeholders: finishing concerns no single member'];
  yield* listProblems(options);
  const { outcomes } = options;
  if (
    outcomes !== undefined &&
    'per_request' in outcomes &&
    outcomes.per_request.statuses.some((s) => s >= 300)
  )
    yield [['outcomes', 'per_request', 'statuses'], 'may hold 2xx statuses only'];
  if (outcomes !== undefined && 'per_request' in outcomes && outcomes.per_request.statuses.includes(207))
    yield [['outcomes', 'per_request', 'statuses'], '207 speaks of single rows: use `per_row`'];
  if (outcomes !== undefined && 'per_row' in outcomes && outcomes.per_row.match === 'operation_id')
    if (options.operation_id === undefined)
      yield [['operation_id'], 'must name the field that carries the operation id, as `match` asks for it'];
}

function* listProblems(options: OptionsShape): Generator<[readonly PropertyKey[], string]> {
  for (const list of ['nothing_applied', 'refused'] as const)
    if (options[list].some((code) => code < 400)) yield [[list], 'may hold statuses from 400 to 599 only'];
  if (options.nothing_applied.some((code) => options.refused.includes(code)))
    yield [['refused'], 'a status cannot stand in `nothing_applied` too'];
}

/** The body of an action: its own, else the common one, else what its path implies. */
export function bodyShape(options: OptionsShape, action: 'upsert' | 'remove'): BodyShape {
  const own = options[action].body ?? options.body;
  if (own !== undefined) return own;
  return placeholders(options[action].path).length > 0 ? 'single' : 'array';
}
