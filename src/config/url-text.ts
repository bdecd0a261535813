/** URLs as they stand in retl.yaml. One that is, or has in it, a reference is judged where that is resolved. */

import { referencesIn } from './secrets.ts';

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;

function isLiteral(url: unknown): url is string {
  return typeof url === 'string' && referencesIn(url).length === 0;
}

/** Whether it is, or may yet be, an http or https URL without query and fragment; a user in it is a fault of its own. */
export function mayBeHttpUrl(url: unknown): boolean {
  if (!isLiteral(url)) return true;
  if (!URL.canParse(url)) return false;
  const { protocol, search, hash } = new URL(url);
  return /^https?:$/.test(protocol) && search === '' && hash === '';
}

/** Whether requests to it would cross a network in the clear. */
export function isPlainHttp(url: unknown): boolean {
  if (!isLiteral(url) || !URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'http:' && !LOOPBACK.test(hostname);
}

/** Whether it is, or may yet be, a certificate in PEM. */
export function mayBeCertificate(text: unknown): boolean {
  return !isLiteral(text) || text.includes('-----BEGIN CERTIFICATE-----');
}
