/**
 * What became of a request whose answer was lost, found out by asking (design.md section 6, `lookup`). Nothing is sent
 * again here. "There is none" is reported as it is; whoever asked holds it against the send deadline (rule 3).
 */

import { canonicalString } from '../../domain/canonical-json.ts';
import type { BatchOutcome, BatchRequest } from '../port.ts';
import type { ApiClient, ApiResult } from '../web-client.ts';
import { type ReplyContent, readContent } from '../web-reply.ts';
import type { Reply } from '../web-transport.ts';
import { judgeJob, judgeSuccess, type Question } from './answer.ts';
import type { Lookup, LookupByKey, LookupByMember } from './job-options.ts';
import { getRequest } from './jobs.ts';
import { at } from './json-pointer.ts';
import { fillPath } from './url.ts';

const ABSENT: BatchOutcome = {
  kind: 'not-applied',
  code: 'lookup-absent',
  retryAfterMs: null,
  tooLarge: false,
};

export function lookUp(
  client: ApiClient,
  lookup: Lookup,
  request: BatchRequest,
  question: Question,
): Promise<BatchOutcome> {
  if ('by_key' in lookup) return byKey(client, lookup.by_key, request, question);
  return byMember(client, lookup.by_member, request);
}

/** One read of whatever the API keeps under the request's key: its job, or the answer that it gave. */
async function byKey(
  client: ApiClient,
  { path, headers, list, absent }: LookupByKey,
  request: BatchRequest,
  question: Question,
): Promise<BatchOutcome> {
  const filled = fillPath(path, { key: request.idempotencyKey });
  if (filled === null) return unknown('lookup-not-addressable');
  const result = await client.send(getRequest(filled, headers));
  if (result.kind !== 'reply') return unanswered(`lookup-${result.code}`);
  const content = readContent(result);
  if (content.kind === 'unreadable') return unanswered(content.code);
  if (absent.includes(result.status)) return ABSENT;
  if (result.status !== 200) return unanswered(`lookup-http-${result.status}`);
  return judgeFound(result, content, list, question);
}

function judgeFound(
  reply: Reply,
  content: ReplyContent,
  list: string | undefined,
  question: Question,
): BatchOutcome {
  const found = list === undefined ? content : onlyEntry(content, list);
  if (found === 'none') return ABSENT;
  if (found === 'many') return unknown('lookup-ambiguous');
  if (question.options.asynchronous !== undefined) return judgeJob(reply, found, question);
  return judgeSuccess(reply, question, found);
}

function onlyEntry(content: ReplyContent, list: string): ReplyContent | 'none' | 'many' {
  const entries = content.kind === 'json' ? at(content.value, list) : undefined;
  if (!Array.isArray(entries) || entries.length > 1) return 'many';
  if (entries.length === 0) return 'none';
  return { kind: 'json', value: entries[0], text: JSON.stringify(entries[0]) };
}

/** One read of each member; all must be as the request wants them, or all as it found them. */
async function byMember(
  client: ApiClient,
  lookup: LookupByMember,
  { action, operations }: BatchRequest,
): Promise<BatchOutcome> {
  let applied = 0;
  for (const [index, { identity, payload }] of operations.entries()) {
    const path = fillPath(lookup.path, JSON.parse(identity));
    if (path === null) return unknown('lookup-not-addressable');
    const member = memberIn(await client.send(getRequest(path, lookup.headers)), lookup);
    if (member.kind === 'unknown') return member;
    const held = member.kind === 'held' ? holds(member.value, payload) : false;
    if (held === null) return unknown('lookup-not-comparable');
    if (action === 'upsert' ? held : member.kind === 'absent') applied += 1;
    if (applied !== 0 && applied !== index + 1) return unknown('lookup-mixed');
  }
  return applied === 0 ? ABSENT : { kind: 'accepted', receipt: { lookedUp: applied } };
}

type Found =
  | { readonly kind: 'held'; readonly value: unknown }
  | { readonly kind: 'absent' }
  | Extract<BatchOutcome, { kind: 'unknown' }>;

function memberIn(result: ApiResult, { absent, member }: LookupByMember): Found {
  if (result.kind !== 'reply') return unanswered(`lookup-${result.code}`);
  const content = readContent(result);
  if (content.kind === 'unreadable') return unanswered(content.code);
  if (absent.includes(result.status)) return { kind: 'absent' };
  if (result.status !== 200 || content.kind !== 'json') return unanswered(`lookup-http-${result.status}`);
  const value = at(content.value, member);
  if (typeof value !== 'object' || value === null) return unknown('lookup-not-understood');
  return { kind: 'held', value };
}

/** Does the member have each field of the payload? `null`: parsing has lost digits, so that nobody can tell. */
function holds(member: unknown, payload: string): boolean | null {
  const wanted: unknown = JSON.parse(payload);
  if (typeof wanted !== 'object' || wanted === null) return null;
  for (const [name, value] of Object.entries(wanted)) {
    const found = at(member, `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
    const [a, b] = [comparable(found), comparable(value)];
    if (a === null || b === null) return null;
    if (a !== b) return false;
  }
  return true;
}

/** Text that is the same for the same JSON; `null` where a number of it is not exact. */
function comparable(value: unknown): string | null {
  if (value === undefined) return 'absent';
  if (typeof value === 'number')
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? null : String(value);
  if (typeof value === 'string') return value.isWellFormed() ? canonicalString(value) : null;
  if (typeof value !== 'object' || value === null) return String(value);
  const parts = Array.isArray(value)
    ? value.map(comparable)
    : Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, inner]) => {
          const text = comparable(inner);
          return text === null ? null : `${JSON.stringify(name)}:${text}`;
        });
  if (parts.includes(null)) return null;
  return Array.isArray(value) ? `[${parts.join()}]` : `{${parts.join()}}`;
}

function unknown(code: string): Extract<BatchOutcome, { kind: 'unknown' }> {
  return { kind: 'unknown', code };
}

/** No usable answer: another time there may be one. */
function unanswered(code: string): Extract<BatchOutcome, { kind: 'unknown' }> {
  return { kind: 'unknown', code, unanswered: true };
}
