/** What a mirror says of an API that works asynchronously, and of how to ask it about an earlier request. */

import { z } from 'zod';
import { headers } from './header-schema.ts';
import { path, perRequest, perRow, pointer, scalar, status } from './option-parts.ts';
import { placeholders } from './url.ts';

/** A read of one thing, named by the placeholder `name`. */
function readOf(name: string) {
  return z.strictObject({
    path: path.refine(
      (text) => placeholders(text).join() === name,
      `must have \`{${name}}\` once, and no other placeholder`,
    ),
    headers: headers.default({}),
  });
}

const listed = z.strictObject({
  list: pointer.describe('where the answer lists them'),
  id: z.string().min(1).describe('the field of a listed row that says which operation it speaks of'),
});

const byList = z.strictObject({
  match: z.string().min(1).describe('what that field repeats: the one identity field, or `operation_id`'),
  accepted: listed,
  rejected: listed.extend({
    reason: z.string().min(1).optional().describe('the field with the reason of a rejected row'),
  }),
});
export type ByList = z.output<typeof byList>;

/** As of a plain answer, and where they stand if not in the answer of the poll itself. */
const resultsRequest = readOf('job')
  .optional()
  .describe(
    'a GET of its own for the results, once the job is done; not given: they stand in the answer of the poll',
  );

const most = z
  .int()
  .min(1)
  .max(10_000)
  .default(100)
  .describe(
    'pages of one job at most; one that has more is asked about again, and blocked past its deadline',
  );
const query = z.string().regex(/^[^\s&=#?]+$/, 'must be the name of a query parameter');

/** How the rows of a job follow on further pages. */
const pages = z
  .union(
    [
      z.strictObject({
        next: pointer.describe(
          'where a page has the link to the next one, or its cursor; absent, null or empty: it is the last',
        ),
        query: query
          .optional()
          .describe('the query parameter that takes the cursor; not given: it is a link'),
        most,
      }),
      z.strictObject({
        offset: query.describe(
          'the query parameter that takes the number of rows that were read; a page without rows is the last',
        ),
        limit: z
          .strictObject({ query, rows: z.int().min(1).max(1_000_000) })
          .optional()
          .describe('the query parameter that takes how many rows a page is to have'),
        most,
      }),
    ],
    { error: 'must be `{next: <pointer>}`, `{next: <pointer>, query: <name>}` or `{offset: <name>}`' },
  )
  .optional()
  .describe('how the rows go on where one answer does not hold them all; not given: it does');
export type ResultPaging = NonNullable<z.output<typeof pages>>;

const results = z.union(
  [
    z.strictObject({ per_row: perRow.omit({ statuses: true }), request: resultsRequest, pages }),
    z.strictObject({ by_list: byList, request: resultsRequest, pages }),
    z.strictObject({ per_request: perRequest.omit({ statuses: true }), request: resultsRequest }),
  ],
  {
    error:
      'must be `{per_row: …}`, `{by_list: …}` or `{per_request: {expect: …}}`, each with or without `request`, the first two with `pages` where there are several',
  },
);
export type JobResults = z.output<typeof results>;

export const asynchronous = z
  .strictObject({
    statuses: z
      .array(status)
      .min(1)
      .default([200, 201, 202])
      .describe('statuses of `upsert` and `remove` whose answer names a job, at `job_id`'),
    poll: readOf('job').describe('the GET that asks for a job: `{path: /jobs/{job}, headers}`'),
    state: z.strictObject({
      at: pointer.describe('where the answer of the poll has the state of the job'),
      running: z.array(scalar).min(1).describe('its values that mean: not yet'),
      done: z
        .array(scalar)
        .min(1)
        .describe('its values that mean: ended, and the results tell of each operation'),
      failed: z.array(scalar).default([]).describe('its values that mean: ended badly'),
    }),
    results: results.describe('what a done job says of each operation'),
    failed: z
      .enum(['unknown', 'not_applied'])
      .default('unknown')
      .describe('not_applied is your word that a failed job has applied nothing; unknown blocks the run'),
    poll_every_ms: z
      .int()
      .min(100)
      .max(86_400_000)
      .default(10_000)
      .describe(
        'milliseconds before a job is asked about first; later pauses grow; `Retry-After` goes before it',
      ),
    max_jobs: z.int().min(1).max(10_000).optional().describe('jobs that may be open at one time'),
  })
  .superRefine(({ state }, context) => {
    const all = [...state.running, ...state.done, ...state.failed];
    if (new Set(all).size !== all.length)
      context.addIssue({ code: 'custom', path: ['state'], message: 'one value cannot mean two things' });
  });
export type Asynchronous = z.output<typeof asynchronous>;

const absent = z
  .array(z.int().min(400).max(499))
  .default([404])
  .describe('statuses that mean: there is none; believed only once the request can no longer arrive');

const byKey = readOf('key').extend({
  list: pointer
    .optional()
    .describe('where the answer lists what has this key; an empty list means: there is none'),
  absent,
});

const byMember = z.strictObject({
  path: path.refine((text) => placeholders(text).length > 0, 'must name the member by placeholders'),
  headers: headers.default({}),
  member: pointer
    .default('')
    .describe('where the answer has the member; not given: the answer is the member'),
  absent,
});

export const lookup = z.union([z.strictObject({ by_key: byKey }), z.strictObject({ by_member: byMember })], {
  error: 'must be `{by_key: {path: …}}` or `{by_member: {path: …}}`',
});
export type Lookup = z.output<typeof lookup>;
export type LookupByKey = z.output<typeof byKey>;
export type LookupByMember = z.output<typeof byMember>;
