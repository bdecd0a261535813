/**
 * `connections.<name>` of type `postgres`, used as a destination: by URL or by fields, with every default filled in.
 * TLS is on and verified unless the server is on this machine (loopback or a Unix socket) or the connection says
 * otherwise. Messages name fields and never repeat what is in them: a URL may hold a password.
 */

import type { PoolConfig } from 'pg';
import { z } from 'zod';
import { UNBOUNDED_MS } from '../port.ts';

/** `require` encrypts and verifies nothing; `verify-ca` does not compare names. */
const TLS_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
type TlsMode = (typeof TLS_MODES)[number];

/** The largest number of milliseconds that the server takes for a limit. */
const MAX_MS = 2_147_483_647;

export interface PostgresConnection {
  /** In lower case, unless it is the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  readonly tls: {
    readonly mode: TlsMode;
    /** PEM texts; absent: Node's own authorities, no client certificate. */
    readonly ca?: string | undefined;
    readonly cert?: string | undefined;
    readonly key?: string | undefined;
  };
  /** In ms; 0 is no limit, but for `connect`. */
  readonly timeouts: {
    readonly connect: number;
    readonly statement: number;
    readonly lock: number;
    readonly idleInTransaction: number;
  };
}

const text = z.string().min(1);

/** Digits count too: what comes out of an environment variable is text. */
function count(min: number, max: number) {
  const inRange = z.coerce.number<string | number>().int().min(min).max(max);
  return z.union([z.number(), z.string().regex(/^\d+$/)]).pipe(inRange);
}

const written = z.strictObject({
  type: z.literal('postgres').optional(),
  url: text.optional().describe('postgres://user:password@host:5432/database'),
  host: text.optional().describe('name, address, or the folder of a Unix socket'),
  port: count(1, 65_535).optional(),
  database: text.optional(),
  user: text.optional(),
  password: text.optional().describe('a secret reference'),
  tls: z
    .strictObject({
      mode: z.enum(TLS_MODES).optional(),
      ca: text.optional().describe('PEM text of the authority; a secret reference to a file'),
      cert: text.optional().describe('PEM text of the client certificate'),
      key: text.optional().describe('PEM text of its key; a secret reference'),
    })
    .default({}),
  connect_timeout_ms: count(1, MAX_MS).default(10_000),
  statement_timeout_ms: count(0, MAX_MS).default(120_000),
  lock_timeout_ms: count(0, MAX_MS).default(10_000),
  idle_in_transaction_timeout_ms: count(0, MAX_MS).default(60_000),
});

type Written = z.output<typeof written>;

export const connectionSchema: z.ZodType<PostgresConnection> = written.transform((input, context) => {
  const faults = [...placeFaults(input), ...tlsFaults(input)];
  for (const { path, message } of faults) context.addIssue({ code: 'custom', path: [path], message });
  return faults.length === 0 ? resolve(input) : z.NEVER;
});

interface Fault {
  readonly path: string;
  readonly message: string;
}

const PLACE = ['host', 'port', 'database', 'user', 'password'] as const;
/** `channel_binding` is what hosted databases put into the URLs they show; a verified certificate gives no less. */
const URL_PARAMETERS = ['sslmode', 'channel_binding', 'host'];

function placeFaults(input: Written): readonly Fault[] {
  if (input.url === undefined) {
    return (['host', 'database', 'user'] as const)
      .filter((field) => input[field] === undefined)
      .map((field) => ({ path: field, message: 'is missing; give it here, or give a url' }));
  }
  const twice = PLACE.filter((field) => input[field] !== undefined).map((field) => ({
    path: field,
    message: 'stands beside a url; give one of the two',
  }));
  const fault = urlFault(input.url);
  return fault === null ? twice : [...twice, { path: 'url', message: fault }];
}

function urlFault(url: string): string | null {
  const place = placeOf(url);
  if (place === null) {
    return 'is no URL of the form postgres://user:password@host:5432/database; in a password write @ as %40, / as %2F, % as %25';
  }
  const unknown = [...new URL(url).searchParams.keys()].filter((key) => !URL_PARAMETERS.includes(key));
  if (unknown.length > 0) return `may only have the parameters ${URL_PARAMETERS.join(', ')}`;
  if (place.host === '' || place.host.includes(',')) return 'must name one host';
  if (place.user === '') return 'must name the user';
  const mode = new URL(url).searchParams.get('sslmode');
  if (mode !== null && tlsMode(mode) === null) return `has an sslmode other than ${TLS_MODES.join(', ')}`;
  return null;
}

function tlsFaults({ url, tls }: Written): readonly Fault[] {
  const faults: Fault[] = [];
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    faults.push({ path: 'tls', message: 'needs cert and key together, or neither' });
  }
  if (tls.mode === 'disable' && (tls.ca ?? tls.cert) !== undefined) {
    faults.push({ path: 'tls', message: 'is disabled, but has certificates' });
  }
  const mode = url !== undefined && URL.canParse(url) ? new URL(url).searchParams.get('sslmode') : null;
  if (mode !== null && tls.mode !== undefined && tls.mode !== mode) {
    faults.push({ path: 'tls', message: 'has another mode than the sslmode of the url' });
  }
  return faults;
}

function tlsMode(text: string | null): TlsMode | null {
  return TLS_MODES.find((mode) => mode === text) ?? null;
}

interface Place {
  readonly host: string;
  readonly port: number | null;
  readonly database: string;
  readonly user: string;
  readonly password: string;
}

/** `null` where the text is no PostgreSQL URL. */
function placeOf(text: string): Place | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  if (!['postgres:', 'postgresql:'].includes(url.protocol) || url.hash !== '') return null;
  try {
    const user = decodeURIComponent(url.username);
    const host = url.searchParams.get('host') ?? decodeURIComponent(url.hostname);
    return {
      host: host.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? null : Number(url.port),
      database: decodeURIComponent(url.pathname.slice(1)) || user,
      user,
      password: decodeURIComponent(url.password),
    };
  } catch {
    return null; // a percent sign that begins no escape
  }
}

function resolve(input: Written): PostgresConnection {
  const fromUrl = input.url === undefined ? null : placeOf(input.url);
  const host = fromUrl?.host ?? input.host ?? '';
  const urlMode = input.url === undefined ? null : tlsMode(new URL(input.url).searchParams.get('sslmode'));
  return {
    host: host.startsWith('/') ? host : host.toLowerCase().replace(/\.$/, ''),
    port: fromUrl?.port ?? input.port ?? 5432,
    database: fromUrl?.database ?? input.database ?? '',
    user: fromUrl?.user ?? input.user ?? '',
    password: fromUrl?.password ?? input.password ?? '',
    tls: { ...input.tls, mode: input.tls.mode ?? urlMode ?? defaultMode(host, input.tls.ca) },
    timeouts: {
      connect: input.connect_timeout_ms,
      statement: input.statement_timeout_ms,
      lock: input.lock_timeout_ms,
      idleInTransaction: input.idle_in_transaction_timeout_ms,
    },
  };
}

const THIS_MACHINE = /^(\/.*|localhost\.?|::1|127(\.\d{1,3}){3})$/i;

function defaultMode(host: string, ca: string | undefined): TlsMode {
  return ca === undefined && THIS_MACHINE.test(host) ? 'disable' : 'verify-full';
}

function tlsOptions({ tls }: PostgresConnection): PoolConfig['ssl'] {
  if (tls.mode === 'disable') return false;
  return {
    rejectUnauthorized: tls.mode !== 'require',
    ...(tls.mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls.key === undefined ? {} : { key: tls.key }),
  };
}

/** How late the server's own limit may be before its connection is given up, in ms. */
const GRACE_MS = 15_000;

/** How long the driver waits for one statement, in ms; `null`: for ever. */
function statementLimit({ timeouts }: PostgresConnection): number | null {
  return timeouts.statement === 0 ? null : Math.min(timeouts.statement + GRACE_MS, MAX_MS);
}

/** How long a request may take before its COMMIT, in ms: describing the table, writing, and the search for bad rows. */
export function writingLimitMs(connection: PostgresConnection): number {
  const statement = statementLimit(connection);
  if (statement === null) return UNBOUNDED_MS;
  return Math.min(UNBOUNDED_MS, 3 * (connection.timeouts.connect + statement));
}

/** How long a request may take in all, in ms. */
export function longestRequestMs(connection: PostgresConnection): number {
  return Math.min(UNBOUNDED_MS, writingLimitMs(connection) + (statementLimit(connection) ?? 0));
}

/** Settings of a pool of at most `max` connections. The limits of statements are set in each transaction. */
export function poolConfig(connection: PostgresConnection, max: number): PoolConfig {
  const { host, port, database, user, password, timeouts } = connection;
  const limit = statementLimit(connection);
  return {
    host,
    port,
    database,
    user,
    // A function, so that the driver never falls back on PGPASSWORD or ~/.pgpass: they are no part of the configuration.
    password: () => password,
    ssl: tlsOptions(connection) ?? false,
    application_name: 'retl-mirror',
    max,
    connectionTimeoutMillis: timeouts.connect,
    // A server that stops answering without closing the connection is given up here.
    ...(limit === null ? {} : { query_timeout: limit }),
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    allowExitOnIdle: true,
  };
}
