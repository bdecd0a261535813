/** `connections.<name>` of type `postgres`, used as a source. Messages name fields and never repeat what is in them. */

import { z } from 'zod';
import { defaultTlsMode, TLS_MODES, type TlsSettings } from './tls.ts';
import { parsePostgresUrl, type UrlParts } from './url.ts';

export interface PostgresSourceConfig {
  /** Name, address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string | null;
  readonly tls: TlsSettings;
  /** Milliseconds; 0 is no limit, except for `connectTimeoutMs`, which is never 0. */
  readonly connectTimeoutMs: number;
  /** For the query as a whole, and so for reading it too: the server counts the time a slow reader takes. */
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** Between opening the snapshot and reading it; while it is being read the transaction is never idle. */
  readonly idleInTransactionTimeoutMs: number;
}

/** The largest number of milliseconds that PostgreSQL takes for a limit. */
const MAX_MS = 2_147_483_647;
const MINUTE_MS = 60_000;

const DEFAULTS = {
  port: 5432,
  connect_timeout_ms: 10_000,
  statement_timeout_ms: 240 * MINUTE_MS,
  lock_timeout_ms: MINUTE_MS,
  idle_in_transaction_timeout_ms: 10 * MINUTE_MS,
} as const;

/** A number, or the digits of one: what comes out of an environment variable is text. */
function whole(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  const number = z.number({ error }).int({ error }).min(min, { error }).max(max, { error });
  const digits = z
    .string({ error })
    .regex(/^\d{1,10}$/, { error })
    .transform(Number)
    .pipe(number);
  return z.union([number, digits], { error });
}

const text = z.string().min(1);

/** A limit in milliseconds, with the words that an editor shows for it. */
function limit(min: 0 | 1, ms: number, description: string) {
  return whole(min, MAX_MS)
    .default(ms)
    .describe(`${description}, in milliseconds${min === 0 ? '; 0: no limit' : ''}`);
}

const tls = z
  .strictObject({
    mode: z
      .enum(TLS_MODES)
      .optional()
      .describe('Default: disable for Unix sockets and loopback, verify-full for every other host'),
    ca: text.optional().describe('PEM text of the authorities to trust; usually a reference to a file'),
    cert: text.optional().describe('PEM text of a client certificate'),
    key: text.meta({ secret: true, description: "PEM text of the client certificate's key" }).optional(),
  })
  .describe('How the connection is protected');

const connection = z.strictObject({
  type: z.literal('postgres').optional(),
  url: text.optional().describe('postgres://user@host:5432/database, instead of the single fields'),
  host: text.optional().describe('Name, address, or the folder of a Unix socket'),
  port: whole(1, 65_535).optional().describe(`Default: ${DEFAULTS.port}`),
  database: text.optional(),
  user: text.optional(),
  password: text.meta({ secret: true }).optional(),
  tls: tls.optional(),
  connect_timeout_ms: limit(1, DEFAULTS.connect_timeout_ms, 'Longest wait for a connection'),
  statement_timeout_ms: limit(
    0,
    DEFAULTS.statement_timeout_ms,
    'Longest time for the query and the reading of all its rows',
  ),
  lock_timeout_ms: limit(0, DEFAULTS.lock_timeout_ms, 'Longest wait for a lock'),
  idle_in_transaction_timeout_ms: limit(
    0,
    DEFAULTS.idle_in_transaction_timeout_ms,
    'Longest time between opening the snapshot and reading it; while it is read it is never idle',
  ),
});

type Written = z.output<typeof connection>;
/** Called with the place and the words of each problem. */
type Report = (path: readonly string[], message: string) => void;

export const connectionSchema: z.ZodType<PostgresSourceConfig> = connection.transform((written, context) => {
  let sound = true;
  const config = settle(written, (path, message) => {
    sound = false;
    context.addIssue({ code: 'custom', path: [...path], message });
  });
  return sound ? config : z.NEVER;
});

function settle(written: Written, report: Report): PostgresSourceConfig {
  const place = whereTo(written, report);
  const required = (name: 'host' | 'database' | 'user'): string => {
    const value = place[name];
    if (value === undefined) report([name], `is missing: give it here or in the url`);
    return value ?? '';
  };
  const host = required('host');
  return {
    host,
    port: place.port ?? DEFAULTS.port,
    database: required('database'),
    user: required('user'),
    password: place.password ?? null,
    tls: tlsOf(written, place, host, report),
    connectTimeoutMs: written.connect_timeout_ms,
    statementTimeoutMs: written.statement_timeout_ms,
    lockTimeoutMs: written.lock_timeout_ms,
    idleInTransactionTimeoutMs: written.idle_in_transaction_timeout_ms,
  };
}

/**
 * Either the url or the single fields, never both: two truths about one place would hide a mistake. The password alone may
 * stand beside a url that has none, where it needs no percent-encoding.
 */
function whereTo(written: Written, report: Report): UrlParts {
  const { host, port, database, user, password } = written;
  const fields: UrlParts = { host, port, database, user, password, tlsMode: undefined };
  if (written.url === undefined) return fields;
  for (const name of ['host', 'port', 'database', 'user'] as const)
    if (written[name] !== undefined) report([name], 'is given beside a url; give one of the two');
  const parsed = parsePostgresUrl(written.url);
  if (parsed.kind === 'problem') {
    report(['url'], parsed.message);
    return { ...fields, host: '-', database: '-', user: '-' }; // the one problem of the url is reported, not its echoes
  }
  if (password !== undefined && parsed.parts.password !== undefined)
    report(['password'], 'is given in the url too; give it once');
  return { ...parsed.parts, password: password ?? parsed.parts.password };
}

function tlsOf(written: Written, place: UrlParts, host: string, report: Report): TlsSettings {
  const tls = written.tls ?? {};
  if (tls.mode !== undefined && place.tlsMode !== undefined && tls.mode !== place.tlsMode)
    report(['tls', 'mode'], 'differs from the sslmode of the url');
  if ((tls.cert === undefined) !== (tls.key === undefined))
    report(
      ['tls', tls.cert === undefined ? 'cert' : 'key'],
      'is missing: a certificate and its key go together',
    );
  const mode = tls.mode ?? place.tlsMode ?? (tls.ca === undefined ? defaultTlsMode(host) : 'verify-full');
  if (mode === 'disable' && (tls.ca !== undefined || tls.cert !== undefined))
    report(['tls', 'mode'], 'is disable, but a certificate is given');
  return { mode, ca: tls.ca ?? null, cert: tls.cert ?? null, key: tls.key ?? null };
}
