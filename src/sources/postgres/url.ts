/** `postgres://user:password@host:port/database?sslmode=…` taken apart, without repeating any of it in a message. */

import { TLS_MODES, type TlsMode } from './tls.ts';

export interface UrlParts {
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly database: string | undefined;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly tlsMode: TlsMode | undefined;
}

export type ParsedUrl =
  | { readonly kind: 'parts'; readonly parts: UrlParts }
  | { readonly kind: 'problem'; readonly message: string };

const NOT_A_URL =
  'is not a URL of the form postgres://user:password@host:5432/database (percent-encode special characters)';
/** `postgres://user@/database?host=/run/postgresql` is a URL to PostgreSQL, but not to the standard. */
const AUTHORITY_WITHOUT_HOST = /^(postgres(?:ql)?:\/\/[^/?#@]*@)(?=[/?#]|$)/;
const NO_HOST = 'no-host.invalid';
const KNOWN_PARAMETERS = new Set(['host', 'sslmode', 'channel_binding']);

export function parsePostgresUrl(text: string): ParsedUrl {
  const complete = text.replace(AUTHORITY_WITHOUT_HOST, `$1${NO_HOST}`);
  const url = URL.canParse(complete) ? new URL(complete) : null;
  if (url === null || !/^postgres(ql)?:$/.test(url.protocol)) return problem(NOT_A_URL);
  if (url.hostname.includes(',')) return problem('names several hosts; name one');
  if (url.hash !== '') return problem(NOT_A_URL);
  const unknown = [...url.searchParams.keys()].filter((name) => !KNOWN_PARAMETERS.has(name));
  if (unknown.length > 0)
    return problem(`has parameters that are not known here; known are: ${[...KNOWN_PARAMETERS].join(', ')}`);
  const tls = tlsModeOf(url.searchParams);
  if (tls.kind === 'problem') return tls;
  const parts = decoded(url, tls.mode);
  return parts === null ? problem(NOT_A_URL) : { kind: 'parts', parts };
}

function decoded(url: URL, tlsMode: TlsMode | undefined): UrlParts | null {
  try {
    const named = url.hostname === NO_HOST ? '' : decodeURIComponent(url.hostname);
    return {
      host: given(url.searchParams.get('host') ?? named.replace(/^\[(.*)\]$/, '$1')),
      port: url.port === '' ? undefined : Number(url.port),
      database: given(decodeURIComponent(url.pathname.slice(1))),
      user: given(decodeURIComponent(url.username)),
      password: given(decodeURIComponent(url.password)),
      tlsMode,
    };
  } catch {
    return null; // a stray percent sign
  }
}

function tlsModeOf(
  parameters: URLSearchParams,
): { kind: 'mode'; mode: TlsMode | undefined } | { kind: 'problem'; message: string } {
  const sslmode = parameters.get('sslmode');
  const mode = TLS_MODES.find((known) => known === sslmode);
  if (sslmode !== null && mode === undefined)
    return problem(`has an sslmode that is not one of ${TLS_MODES.join(', ')}`);
  // Whoever requires channel binding wants the server proven; a verified certificate proves it.
  if (parameters.get('channel_binding') === 'require') {
    if (mode === 'disable') return problem('requires channel binding, which there is not without TLS');
    return { kind: 'mode', mode: 'verify-full' };
  }
  return { kind: 'mode', mode };
}

function given(text: string): string | undefined {
  return text === '' ? undefined : text;
}

function problem(message: string): { kind: 'problem'; message: string } {
  return { kind: 'problem', message };
}
