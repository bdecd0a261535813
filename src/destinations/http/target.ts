/**
 * What an upsert writes into, and in which form. The removal's path is no part of it: two mirrors that fill one audience
 * collide in it, however each of them takes members out again. Nor is the method: POST and PUT to one path are two
 * ways into one place.
 */

import { createHash } from 'node:crypto';
import { canonicalJson } from '../../domain/canonical-json.ts';
import type { SourceValue } from '../../domain/source-row.ts';
import { bodyShape, type HttpOptions } from './options.ts';
import { normalOrigin, normalPath } from './url.ts';

/**
 * The address of upserts, and the constant fields and headers that go with each and may select an audience under it. Those
 * are hashed: nobody should put a secret there, and a key is kept and shown. The connection's own headers and
 * credentials are not in it: they change with every rotation.
 */
export function httpTargetKey(baseUrl: string, options: HttpOptions): string {
  const address = ['http', normalOrigin(baseUrl), normalPath(baseUrl, options.upsert.path)];
  const constants = constantsOf(options);
  // Canonical JSON: an array of strings has one spelling only.
  return JSON.stringify(constants === null ? address : [...address, `sha256:${sha256(constants)}`]);
}

function constantsOf(options: HttpOptions): string | null {
  const shape = bodyShape(options, 'upsert');
  const fields = typeof shape === 'object' ? shape.fields : {};
  const headers = Object.fromEntries(
    Object.entries(options.upsert.headers).map(([name, value]) => [name.toLowerCase(), value.trim()]),
  );
  if (Object.keys(fields).length + Object.keys(headers).length === 0) return null;
  return canonicalJson({ fields: sourceValue(fields), headers });
}

/** What decides, besides the target, how a payload arrives: any change of it wants every member sent again. */
export function httpWriteForm(options: HttpOptions): string {
  const { method, path } = options.upsert;
  const shape = bodyShape(options, 'upsert');
  const body = typeof shape === 'object' ? { wrap: shape.wrap } : shape;
  return canonicalJson({ method, path, body, operation_id: options.operation_id ?? null });
}

/** JSON is a source value; its type only does not say so. */
function sourceValue(value: unknown): SourceValue {
  return JSON.parse(JSON.stringify(value));
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
