/**
 * Where the next page of a job's results is, as the mirror's settings say and the page itself tells. A page never leads to another
 * place than the API's own: what is asked carries its credentials.
 */

import type { ReplyContent } from '../web-reply.ts';
import type { ResultPaging } from './job-options.ts';
import { at } from './json-pointer.ts';
import { normalOrigin } from './url.ts';

/** UTF-16 units of a link or a cursor. */
const LONGEST = 4_000;

export type NextPage =
  | { readonly kind: 'last' }
  /** `path`: below the base URL. */
  | { readonly kind: 'next'; readonly path: string }
  | { readonly kind: 'unusable'; readonly code: string };

/** What was read so far of the results of one job. */
export interface PagesRead {
  /** Paths that were asked for, the last one last. */
  readonly paths: readonly string[];
  /** Rows of all of them, and of the last one alone. */
  readonly rows: number;
  readonly lastRows: number;
}

/** How the first page is asked for. */
export function firstPage(path: string, paging: ResultPaging | undefined): string {
  if (paging === undefined || !('offset' in paging) || paging.limit === undefined) return path;
  return withQuery(path, { [paging.limit.query]: String(paging.limit.rows) });
}

export function nextPage(
  baseUrl: string,
  content: ReplyContent,
  paging: ResultPaging | undefined,
  read: PagesRead,
): NextPage {
  if (paging === undefined) return { kind: 'last' };
  const next = 'offset' in paging ? byOffset(paging, read) : named(baseUrl, content, paging, read);
  if (next.kind !== 'next') return next;
  if (read.paths.includes(next.path)) return { kind: 'unusable', code: 'pages-repeat' };
  if (read.paths.length >= paging.most) return { kind: 'unusable', code: 'pages-too-many' };
  return next;
}

/** A page without rows is the last one; one that is short of what was asked for may not be. */
function byOffset(paging: Extract<ResultPaging, { offset: string }>, read: PagesRead): NextPage {
  const [first = ''] = read.paths;
  if (read.lastRows === 0) return { kind: 'last' };
  return { kind: 'next', path: withQuery(first, { [paging.offset]: String(read.rows) }) };
}

/** Absent, null and `''` name no further page; anything else that is no text, or no number for a cursor, says nothing. */
function named(
  baseUrl: string,
  content: ReplyContent,
  paging: Exclude<ResultPaging, { offset: string }>,
  { paths }: PagesRead,
): NextPage {
  const value = content.kind === 'json' ? at(content.value, paging.next) : undefined;
  if (value === undefined || value === null || value === '') return { kind: 'last' };
  const isText = typeof value === 'string' && value.length <= LONGEST;
  const [first = ''] = paths;
  if ('query' in paging && paging.query !== undefined) {
    if (!isText && !Number.isSafeInteger(value)) return { kind: 'unusable', code: 'page-not-understood' };
    return { kind: 'next', path: withQuery(first, { [paging.query]: String(value) }) };
  }
  const path = isText ? linkedPath(baseUrl, paths.at(-1) ?? first, value) : null;
  return path === null ? { kind: 'unusable', code: 'page-elsewhere' } : { kind: 'next', path };
}

/** A link, whole or relative to the page that it stands in, as a path below the base URL; `null`: it leads elsewhere. */
function linkedPath(baseUrl: string, from: string, link: string): string | null {
  const base = new URL(baseUrl);
  const below = base.pathname.replace(/\/+$/, '');
  const target = resolved(link, new URL(below + from, base));
  if (target === null || normalOrigin(target.href) !== normalOrigin(baseUrl)) return null;
  if (target.username !== '' || target.password !== '') return null;
  if (!target.pathname.startsWith(`${below}/`)) return null;
  return target.pathname.slice(below.length) + target.search;
}

function resolved(link: string, from: URL): URL | null {
  try {
    return new URL(link, from);
  } catch {
    return null;
  }
}

/** What the path's query has of these names is replaced; the rest stands as it is written. */
function withQuery(path: string, values: { readonly [name: string]: string }): string {
  const [place = '', query = ''] = path.split('?', 2);
  const kept = query
    .split('&')
    .filter((part) => part !== '' && !Object.hasOwn(values, part.split('=', 1)[0] ?? ''));
  const added = Object.entries(values).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `${place}?${[...kept, ...added].join('&')}`;
}
