/**
 * Whether the requests of one mirror speak of one audience (design.md section 1: never a wrong deletion). `upsert` decides where
 * members go, and the other addresses are written beside it by hand: one that was left behind in a copied file removes from
 * another audience, or looks for emptiness in another.
 *
 * The rule: addresses are walked along, side by side, past words for what is done (`add`, `remove`, …). Where they part first,
 * two different things that have a digit (ids: `42` and `43`) are two places. So are two ids under one name in their
 * queries, headers and the constant fields of their bodies. Two plain names may be, and are only pointed out.
 */

import { normalHeaders, normalPath } from './url.ts';

interface Read {
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
}

type Body = string | { readonly fields: { readonly [name: string]: unknown } };

interface Write extends Read {
  readonly body?: Body | undefined;
}

/** What of a mirror's options names places. */
export interface Addressed {
  readonly upsert: Write;
  readonly remove: Write;
  /** Of both, where they do not say their own. */
  readonly body?: Body | undefined;
  readonly verify_empty?: Read | undefined;
  readonly finish?: Read | undefined;
  readonly asynchronous?:
    | { readonly poll: Read; readonly results: { readonly request?: Read | undefined } }
    | undefined;
  readonly lookup?: { readonly by_key: Read } | { readonly by_member: Read } | undefined;
}

interface Address extends Read {
  /** Constant fields of a body. */
  readonly fields: { readonly [name: string]: unknown };
}

export interface Parting {
  /** Where in the options. */
  readonly at: readonly string[];
  /** What differs from `upsert`: a part of the path, or a name. */
  readonly what: string;
  /** Two ids; else two names, which may be two names of one thing. */
  readonly isSure: boolean;
}

export function* partings(options: Addressed): Generator<Parting> {
  const upsert: Address = { ...options.upsert, fields: fieldsOf(options, 'upsert') };
  const [own] = splitPath(upsert.path);
  for (const [at, other] of addresses(options)) {
    const [segments] = splitPath(other.path);
    const parted = partingSegment(own, segments);
    if (parted !== null) yield { at: [...at, 'path'], ...parted };
    for (const name of differing(queryOf(upsert.path), queryOf(other.path)))
      yield { at: [...at, 'path'], what: `the query’s ${name}`, isSure: true };
    for (const name of differing(flat(normalHeaders(upsert.headers)), flat(normalHeaders(other.headers))))
      yield { at: [...at, 'headers'], what: `the header ${name}`, isSure: true };
    for (const name of differing(flat(upsert.fields), flat(other.fields)))
      yield { at: [...at, 'body', 'fields'], what: `the field ${name}`, isSure: true };
  }
}

/** All that are written, with where they stand. */
function* addresses(options: Addressed): Generator<[readonly string[], Address]> {
  const { remove, verify_empty, finish, asynchronous, lookup } = options;
  yield [['remove'], { ...remove, fields: fieldsOf(options, 'remove') }];
  if (verify_empty !== undefined) yield [['verify_empty'], { ...verify_empty, fields: {} }];
  if (finish !== undefined) yield [['finish'], { ...finish, fields: {} }];
  if (asynchronous !== undefined) {
    yield [['asynchronous', 'poll'], { ...asynchronous.poll, fields: {} }];
    const { request } = asynchronous.results;
    if (request !== undefined) yield [['asynchronous', 'results', 'request'], { ...request, fields: {} }];
  }
  if (lookup === undefined) return;
  if ('by_key' in lookup) yield [['lookup', 'by_key'], { ...lookup.by_key, fields: {} }];
  else yield [['lookup', 'by_member'], { ...lookup.by_member, fields: {} }];
}

function partingSegment(
  own: readonly string[],
  other: readonly string[],
): Pick<Parting, 'what' | 'isSure'> | null {
  for (const [n, mine] of own.entries()) {
    const theirs = other[n];
    if (theirs === undefined || mine.includes('{') || theirs.includes('{')) return null;
    if (mine === theirs || isAction(mine) || isAction(theirs) || (isVersion(mine) && isVersion(theirs)))
      continue;
    const isSure = isId(mine) && isId(theirs);
    // Another depth is another kind of resource, whose name says nothing.
    return isSure || own.length === other.length ? { what: `“${theirs}”, not “${mine}”`, isSure } : null;
  }
  return null;
}

/** Names of both that stand for two different ids. */
function differing(own: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): readonly string[] {
  return [...own].flatMap(([name, mine]) => {
    const theirs = other.get(name);
    if (theirs === undefined || theirs === mine || !isId(mine) || !isId(theirs)) return [];
    return isFlag(mine) && isFlag(theirs) ? [] : [name];
  });
}

/** Has a digit, and is one word: neither a version, a day, nor a media type. */
function isId(text: string): boolean {
  return /\d/.test(text) && /^[\w.~:-]+$/.test(text) && !isVersion(text);
}

/** `v2`, `3.0`, `2024-10-15`. */
function isVersion(text: string): boolean {
  return /^(?:v\d+(?:\.\d+)*|\d+(?:\.\d+)+|\d{4}-\d\d(?:-\d\d)?)$/i.test(text);
}

function isFlag(text: string): boolean {
  return text === '0' || text === '1';
}

const ACTIONS =
  /^(?:add|append|archive|assign|attach|batch|bulk|check|clear|count|create|del|delete|destroy|detach|disable|drop|enable|enroll|erase|exclude|exists|export|finish|get|identify|import|include|ingest|insert|invite|join|leave|link|merge|patch|post|purge|put|query|remove|removal|replace|revoke|search|set|size|stats|status|subscribe|suppress|sync|track|un\w+|update|upload|upsert|write)(?:s|d|ed|ing)?$/;

/** A word for what is done, also within `batch-delete`, `removeMembers`, `members:add`. */
function isAction(segment: string): boolean {
  const words = segment.replaceAll(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
  return words.split(/[^a-z]+/).some((word) => ACTIONS.test(word));
}

function splitPath(path: string): readonly [readonly string[], string] {
  const [whole = '', query = ''] = normalPath('http://localhost', path).split('?');
  return [whole.split('/').slice(1), query];
}

function queryOf(path: string): ReadonlyMap<string, string> {
  return new Map(new URLSearchParams(splitPath(path)[1]));
}

function fieldsOf(options: Addressed, action: 'upsert' | 'remove'): Address['fields'] {
  const shape = options[action].body ?? options.body;
  return typeof shape === 'object' ? shape.fields : {};
}

/** Texts and numbers by their names, those of objects within objects as `audience.id`. */
function flat(fields: Address['fields'], before = ''): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string' || typeof value === 'number') found.set(before + name, String(value));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) continue;
    for (const [path, inner] of flat({ ...value }, `${before}${name}.`)) found.set(path, inner);
  }
  return found;
}
