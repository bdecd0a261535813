/** What a mirror says of its API: requests, bodies, and what answers mean. */

import { z } from 'zod';
import { headerName, headers } from './header-schema.ts';
import { asynchronous, lookup } from './job-options.ts';
import { path, perRequest, perRow, pointer, status } from './option-parts.ts';
import { partings } from './places.ts';
import { placeholders } from './url.ts';

export type { PerRequest, PerRow } from './option-parts.ts';

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
    split: z
      .array(status)
      .default([])
      .describe(
        'statuses that refuse a whole request, prove that nothing of it was applied, and may be one operation’s fault: it is split to find that one',
      ),
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
    separate_places: z
      .boolean()
      .default(false)
      .describe(
        'true or false; true is your word that the addresses of this mirror differ from that of `upsert` on purpose, ids included',
      ),
    identity_folding: z
      .array(z.enum(['case', 'nfc', 'nfkc']))
      .default([])
      .describe('a list of case, nfc, nfkc: what the API ignores when it compares identities'),
    asynchronous: asynchronous
      .optional()
      .describe(
        'an API that answers with a job: how it is asked about, what its states mean, where its results are',
      ),
    lookup: lookup
      .optional()
      .describe('how to ask what became of a request whose answer was lost: {by_key: …} or {by_member: …}'),
  })
  .superRefine((options, context) => {
    for (const [path, message] of optionProblems(options))
      context.addIssue({ code: 'custom', path: [...path], message });
  });

export type HttpOptions = z.output<typeof httpOptionsSchema>;

function* optionProblems(options: HttpOptions): Generator<[readonly PropertyKey[], string]> {
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
  if (!options.separate_places)
    for (const { at, what, isSure } of partings(options))
      if (isSure)
        yield [
          at,
          `leads elsewhere than \`upsert\`: ${what}. Name the same place in both; where it is meant, say \`separate_places: true\``,
        ];
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
  if (options.operation_id === undefined && matches(options).some(([, match]) => match === 'operation_id'))
    yield [['operation_id'], 'must name the field that carries the operation id, as `match` asks for it'];
  if (outcomes !== undefined && options.asynchronous !== undefined)
    yield [
      ['outcomes'],
      'says what an answer means, and `asynchronous` answers with a job: use its `results`',
    ];
}

function* listProblems(options: HttpOptions): Generator<[readonly PropertyKey[], string]> {
  for (const list of ['nothing_applied', 'refused', 'split'] as const)
    if (options[list].some((code) => code < 400)) yield [[list], 'may hold statuses from 400 to 599 only'];
  if (options.nothing_applied.some((code) => options.refused.includes(code)))
    yield [['refused'], 'a status cannot stand in `nothing_applied` too'];
  if (options.split.some((code) => options.nothing_applied.includes(code)))
    yield [['split'], 'a status cannot stand in `nothing_applied` too'];
}

/** Where `match` is set, and to what. */
export function matches({ outcomes, asynchronous }: HttpOptions): readonly (readonly [string, string])[] {
  const found: [string, string][] = [];
  if (outcomes !== undefined && 'per_row' in outcomes)
    found.push(['outcomes.per_row.match', outcomes.per_row.match]);
  const results = asynchronous?.results;
  if (results !== undefined && 'per_row' in results)
    found.push(['asynchronous.results.per_row.match', results.per_row.match]);
  if (results !== undefined && 'by_list' in results)
    found.push(['asynchronous.results.by_list.match', results.by_list.match]);
  return found;
}

/** The body of an action: its own, else the common one, else what its path implies. */
export function bodyShape(options: HttpOptions, action: 'upsert' | 'remove'): BodyShape {
  const own = options[action].body ?? options.body;
  if (own !== undefined) return own;
  return placeholders(options[action].path).length > 0 ? 'single' : 'array';
}
