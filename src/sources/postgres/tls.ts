/** How the connection to the source is protected. */

import { isIPv4, isIPv6 } from 'node:net';
import type { ConnectionOptions } from 'node:tls';

/**
 * `disable`: no TLS. `require`: encrypted, the server is not verified. `verify-ca`: its certificate must come from a
 * trusted authority. `verify-full`: and must name the host that was asked for.
 */
export const TLS_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
export type TlsMode = (typeof TLS_MODES)[number];

export interface TlsSettings {
  readonly mode: TlsMode;
  /** PEM text of the authorities to trust; `null`: those that come with Node. */
  readonly ca: string | null;
  /** PEM texts of a client certificate and its key, for servers that ask for one. */
  readonly cert: string | null;
  readonly key: string | null;
}

/** Without a word from the user, everything that leaves the machine is verified. */
export function defaultTlsMode(host: string): TlsMode {
  return isUnixSocket(host) || isLoopback(host) ? 'disable' : 'verify-full';
}

/** A host that begins with a slash is the folder of a Unix socket, as in libpq. */
export function isUnixSocket(host: string): boolean {
  return host.startsWith('/');
}

function isLoopback(host: string): boolean {
  if (isIPv4(host)) return host.startsWith('127.');
  if (isIPv6(host)) return host === '::1' || host === '0:0:0:0:0:0:0:1';
  return host === 'localhost' || host.endsWith('.localhost');
}

/** The options of Node's TLS for these settings; `false`: no TLS. */
export function tlsOptions(settings: TlsSettings): ConnectionOptions | false {
  if (settings.mode === 'disable') return false;
  return {
    rejectUnauthorized: settings.mode !== 'require',
    ...(settings.mode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
    ...(settings.ca === null ? {} : { ca: settings.ca }),
    ...(settings.cert === null ? {} : { cert: settings.cert }),
    ...(settings.key === null ? {} : { key: settings.key }),
  };
}
