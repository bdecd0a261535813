/** URLs as they stand in retl.yaml. One that is, or has in it, a reference is judged where that is resolved. */

import { isPlainHttp } from '../domain/http-url.ts';
import { referencesIn } from './secrets.ts';

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

/** Whether it is known that requests to it would cross a network in the clear. */
export function isKnownPlainHttp(url: unknown): boolean {
  return isLiteral(url) && isPlainHttp(url);
}

/** Whether it is, or may yet be, a certificate in PEM. */
export function mayBeCertificate(text: unknown): boolean {
  return !isLiteral(text) || text.includes('-----BEGIN CERTIFICATE-----');
}
