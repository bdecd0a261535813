/** `indexes` of retl.yaml: what is derived from the log, and the system that each lives in. */

import { z } from 'zod';
import { INDEX_NAME } from '../domain/index-messages.ts';
import type { EngineSettings, IndexSettings, ProjectSettings } from '../domain/settings.ts';
import { REFERENCE_FORMS } from './secrets.ts';
import { isKnownPlainHttp, mayBeCertificate, mayBeHttpUrl } from './url-text.ts';

const DEFAULT_SCHEMA = 'retl_index';
const KINDS = ['membership-search', 'membership-history'] as const;
const SYSTEMS = ['postgres', 'opensearch', 'elasticsearch'] as const;
/** An index of an engine, with its build and words, has at most 255 bytes. */
const LONGEST_PREFIX = 100;
const MANY = 100;
const HOUR_MS = 3_600_000;

const secret = (what: string) => z.string().min(1).describe(`${what}, as ${REFERENCE_FORMS}`).optional();

const indexInput = z.strictObject({
  kind: z.enum(KINDS).describe('membership-search or membership-history'),
  engine: z
    .enum(SYSTEMS)
    .meta({
      description: 'the system that it lives in: postgres, opensearch or elasticsearch',
      default: 'postgres',
    })
    .optional(),
  url: z
    .string()
    .min(1)
    .describe(
      `URL of its system: of a PostgreSQL database, as ${REFERENCE_FORMS}, the journal’s own where left out; of a search engine, such as https://search.example.org:9200`,
    )
    .optional(),
  schema: z
    .string()
    .min(1)
    .max(63)
    .regex(/^[^\s"$]+$/)
    .meta({ description: 'name of the PostgreSQL schema that it lives in', default: DEFAULT_SCHEMA })
    .optional(),
  username: secret('a user of the search engine'),
  password: secret('the user’s password'),
  api_key: secret('an API key of the search engine, in place of user and password'),
  ca: secret('certificates in PEM that are trusted instead of the well-known ones'),
  allow_plain_http: z
    .boolean()
    .meta({ description: 'true or false: whether requests may cross a network unencrypted', default: false })
    .optional(),
  prefix: z
    .string()
    .max(LONGEST_PREFIX)
    .regex(/^[a-z0-9][a-z0-9_-]*$/)
    .describe(
      'what the names of its indexes in the search engine begin with: lower-case letters, digits, `-`, `_`',
    )
    .optional(),
  shards: z
    .int()
    .min(1)
    .max(MANY)
    .meta({ description: 'a number of shards of the search engine, from 1 to 100', default: 1 })
    .optional(),
  replicas: z
    .int()
    .min(0)
    .max(MANY)
    .meta({ description: 'a number of copies of each shard, from 0 to 100', default: 1 })
    .optional(),
  timeout_ms: z
    .int()
    .min(1)
    .max(HOUR_MS)
    .meta({ description: 'milliseconds for one request to the search engine', default: 60_000 })
    .optional(),
  hold_log: z
    .boolean()
    .meta({
      description:
        'true or false: whether the log is kept from compaction, so that a new build has all of it; true for membership-history, false for membership-search where left out',
    })
    .optional(),
  retired: z
    .boolean()
    .meta({
      description:
        'true or false: whether nobody shall follow it or ask it any more, so that `retl index forget` can drop it where it lives',
      default: false,
    })
    .optional(),
});

type IndexInput = z.infer<typeof indexInput>;

const OF_ENGINES = [
  'username',
  'password',
  'api_key',
  'ca',
  'allow_plain_http',
  'prefix',
  'shards',
  'replicas',
  'timeout_ms',
] as const;

/** What does not fit together; each is told at its place, whatever else is wrong. */
const fitting = z.superRefine(
  (index: IndexInput, context) => {
    const fault = (key: keyof IndexInput, message: string, remedy: string) =>
      context.addIssue({ code: 'custom', path: [key], message, params: { remedy } });
    const { engine = 'postgres' } = index;
    // What no system has is told of the system alone.
    if (!SYSTEMS.includes(engine)) return;
    if (engine === 'postgres') {
      for (const key of OF_ENGINES)
        if (index[key] !== undefined)
          fault(
            key,
            'is for an index in a search engine',
            'Set `engine` to opensearch or elasticsearch, or remove it.',
          );
      if (/^https?:/i.test(String(index.url ?? '')))
        fault('url', 'is no URL of a PostgreSQL database', 'Set `engine` to opensearch or elasticsearch.');
      return;
    }
    if (index.kind === 'membership-history')
      fault(
        'kind',
        'must be membership-search in a search engine',
        'A membership-history lives in PostgreSQL.',
      );
    if (index.schema !== undefined)
      fault('schema', 'is for an index in PostgreSQL', 'Use `prefix` for names in a search engine.');
    if (index.url === undefined)
      fault('url', 'is needed for a search engine', 'Set `url`, such as https://search.example.org:9200.');
    else if (!mayBeHttpUrl(index.url))
      fault(
        'url',
        'must be an http or https URL without query and fragment',
        'Give user and password as `username` and `password`.',
      );
    else if (isKnownPlainHttp(index.url) && index.allow_plain_http !== true)
      fault('url', 'may be plain http on this machine only', 'Use https, or set `allow_plain_http: true`.');
    if (index.username !== undefined && index.password === undefined)
      fault('password', 'is missing beside `username`', 'Give both or neither.');
    if (index.password !== undefined && index.username === undefined)
      fault('username', 'is missing beside `password`', 'Give both or neither.');
    if (!mayBeCertificate(index.ca))
      fault('ca', 'must be one or more certificates in PEM', `Write ${REFERENCE_FORMS}.`);
    if (index.api_key !== undefined && index.username !== undefined)
      fault('api_key', 'stands beside `username`', 'Give the one or the other.');
  },
  { when: ({ value }) => typeof value === 'object' && value !== null },
);

export const indexesInput = z
  .record(
    z
      .string()
      .regex(INDEX_NAME)
      .describe('a name of lower-case letters, digits and `-`, at most 63, not beginning with `-`'),
    indexInput
      .check(fitting)
      .describe('{kind, url, schema, hold_log, retired}, in a search engine {kind, engine, url, …}'),
  )
  .describe('what is derived from the log, by name');

export function indexSettings(
  input: z.infer<typeof indexesInput> | undefined,
): Pick<ProjectSettings, 'indexes' | 'retiredIndexes'> {
  const written = Object.entries(input ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const those = (retired: boolean) =>
    written
      .filter(([, index]) => (index.retired ?? false) === retired)
      .map(([name, index]) => settingsOf(name, index));
  return { indexes: those(false), retiredIndexes: those(true) };
}

function settingsOf(name: string, index: IndexInput): IndexSettings {
  const { kind, url, schema, hold_log } = index;
  const engine = engineOf(index);
  return {
    name,
    kind,
    url: engine === null ? (url ?? null) : null,
    schema: schema ?? DEFAULT_SCHEMA,
    engine,
    holdsLog: hold_log ?? kind === 'membership-history',
  };
}

function engineOf(index: IndexInput): EngineSettings | null {
  const { engine: system = 'postgres' } = index;
  if (system === 'postgres') return null;
  const options = (['url', ...OF_ENGINES] as const).flatMap((key) => {
    const value = index[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  return { system, options: Object.fromEntries(options) };
}
