/**
 * Paths of the configured requests: `{field}` placeholders filled from the identity, joined to the base URL, and
 * normalised for the target key.
 */

import { compareNames } from '../../domain/canonical-json.ts';
import { joinPath } from '../web-client.ts';

const PLACEHOLDER = /\{([^{}]*)\}/g;

/** A path from the configuration: begins with one `/`, no fragment, no white space, placeholders well formed. */
export function isPath(path: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is kept out
  if (!/^\/(?!\/)[^\u0000-\u0020\u007f-\uffff#\\]*$/.test(path)) return false;
  if (placeholders(path).includes('')) return false;
  if (/[{}]/.test(path.replaceAll(PLACEHOLDER, ''))) return false;
  return !path.split(/[/?]/).some((part) => part === '.' || part === '..');
}

/** Names of the identity fields that a path asks for. */
export function placeholders(path: string): readonly string[] {
  return [...path.matchAll(PLACEHOLDER)].map((match) => match[1] ?? '');
}

/**
 * Fills the placeholders, percent-encoded. `null` where a value cannot stand in a path without changing which
 * resource is meant: empty (`DELETE /members/` would name the collection), `.` and `..`, or not a scalar.
 */
export function fillPath(path: string, identity: { readonly [field: string]: unknown }): string | null {
  let addressable = true;
  const filled = path.replaceAll(PLACEHOLDER, (_, name: string) => {
    const encoded = encodeSegment(Object.hasOwn(identity, name) ? identity[name] : undefined);
    if (encoded === null) addressable = false;
    return encoded ?? '';
  });
  return addressable ? filled : null;
}

function encodeSegment(value: unknown): string | null {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return null;
  const text = String(value);
  // An empty value, and those that proxies would walk up the tree by after decoding %2F or %2E, are not sent in a path.
  if (text.split(/[/\\]/).some((part) => /^(?:\.|%2e)*$/i.test(part))) return null;
  try {
    return encodeURIComponent(text).replaceAll(
      /[!'()*]/g,
      (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  } catch {
    return null; // a lone surrogate
  }
}

/** Scheme, lower-case host and port (the default one left out): `https://api.example.com`. */
export function normalOrigin(baseUrl: string): string {
  const url = new URL(baseUrl);
  const host = url.hostname.replace(/\.$/, '');
  return `${url.protocol}//${host}${url.port === '' ? '' : `:${url.port}`}`;
}

/**
 * The joined path in one spelling: percent-encoding normalised (RFC 3986, 6.2.2), placeholders without names, no slash at
 * its end, the query's parameters in the order of their names (those of one name in the order given).
 */
export function normalPath(baseUrl: string, path: string): string {
  const [whole = '', ...rest] = normalEncoding(joinPath(baseUrl, path).replaceAll(PLACEHOLDER, '{}')).split(
    '?',
  );
  const query = rest
    .join('?')
    .split('&')
    .filter((part) => part !== '');
  const name = (part: string) => part.split('=', 1)[0] ?? '';
  const sorted = query.toSorted((a, b) => compareNames(name(a), name(b)));
  return whole.replace(/\/+$/, '') + (sorted.length === 0 ? '' : `?${sorted.join('&')}`);
}

function normalEncoding(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (whole, hex: string) => {
    const char = String.fromCharCode(Number.parseInt(hex, 16));
    return /[A-Za-z0-9\-._~]/.test(char) ? char : whole.toUpperCase();
  });
}

/** Headers that are the same on the wire are the same here. */
export function normalHeaders(headers: { readonly [name: string]: string }): {
  readonly [name: string]: string;
} {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()]),
  );
}
