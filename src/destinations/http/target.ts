/**
 * What an upsert writes into, and in which form; and what else decides where requests arrive (`Route`). The removal's path is no part of it: two mirrors that fill one audience
 * collide in it, however each of them takes members out again. Nor is the method: POST and PUT to one path are two
 * ways into one place.
 */

import { createHash } from 'node:crypto';
import { canonicalJson } from '../../domain/canonical-json.ts';
import type { SourceValue } from '../../domain/source-row.ts';
import type { Action } from '../port.ts';
import type { Route } from '../route.ts';
import type { HttpConnection } from './connection.ts';
import { bodyShape, type HttpOptions } from './options.ts';
import { normalHeaders, normalOrigin, normalPath } from './url.ts';

/**
 * The address of upserts, and the constant fields and headers that go with each and may select an audience under it. Those
 * are hashed: nobody should put a secret there, and a key is kept and shown. The connection's own headers and
 * credentials are not in it: they change with every rotation. Its `account` is, where one is named.
 */
export function httpTargetKey({ base_url, account }: Place, options: HttpOptions): string {
  return keyOf(
    { base_url, account },
    normalPath(base_url, options.upsert.path),
    constantsOf(options, 'upsert'),
  );
}

function keyOf({ base_url, account }: Place, path: string, constants: string | null): string {
  // Canonical JSON: an array of strings has one spelling only, and neither suffix begins as the other does.
  return JSON.stringify([
    'http',
    normalOrigin(base_url),
    path,
    ...(constants === null ? [] : [`sha256:${sha256(constants)}`]),
    ...(account === undefined ? [] : [`account:${account}`]),
  ]);
}

/** Members' own parts at the end of a path. */
const OF_A_MEMBER = /(?:\/\{\})+(?=\?|$)/;

/**
 * Another address than that of `upsert`, members' own parts aside, may be where another mirror's upserts go: as it is or one by
 * one, with or without constants.
 */
function removesFrom(place: Place, options: HttpOptions): readonly string[] {
  const ofAll = (path: string) => normalPath(place.base_url, path).replace(OF_A_MEMBER, '');
  const path = ofAll(options.remove.path);
  if (options.separate_places || path === ofAll(options.upsert.path)) return [];
  const oneByOne = path.replace(/(?=\?|$)/, '/{}');
  const constants = [...new Set([null, constantsOf(options, 'remove')])];
  return [path, oneByOne].flatMap((each) => constants.map((constant) => keyOf(place, each, constant)));
}

type Place = Pick<HttpConnection, 'base_url' | 'account'>;

/**
 * Which account credentials open, nobody but the API knows. So credentials and headers of the connection count as they are
 * written: another variable is asked about, another value in it (a rotation) is not. A named account is in the key instead.
 */
export function httpRoute(
  { base_url, account }: Place,
  options: HttpOptions,
  written: { readonly [key: string]: unknown },
): Route {
  const { auth = 'none', headers = {} } = written;
  const { method, path } = options.remove;
  const address = [method, normalOrigin(base_url), normalPath(base_url, path)];
  return {
    credentials: account === undefined ? canonicalJson(sourceValue({ auth, headers })) : '',
    removals: canonicalJson({ address, constants: constantsOf(options, 'remove') }),
    removesFrom: removesFrom({ base_url, account }, options),
  };
}

function constantsOf(options: HttpOptions, action: Action): string | null {
  const shape = bodyShape(options, action);
  const fields = typeof shape === 'object' ? shape.fields : {};
  const headers = normalHeaders(options[action].headers);
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
