/**
 * From one HTTP exchange to what it proves. Accepted needs proof; so does not-applied; everything else is unknown
 * (design.md sections 6 and 9, rule 3).
 */

import type { BatchOutcome, Operation, Receipt } from '../port.ts';
import type { Redactor } from '../web-redactor.ts';
import { type ReplyContent, readContent } from '../web-reply.ts';
import { retryAfterMs } from '../web-retry-after.ts';
import type { Exchange, Reply } from '../web-transport.ts';
import { agrees, sentOf } from './agreement.ts';
import { at } from './json-pointer.ts';
import type { PerRequest } from './option-parts.ts';
import type { HttpOptions } from './options.ts';
import { claimsAcceptance, readRows } from './rows.ts';
import { fillPath } from './url.ts';

/** UTF-16 units kept of a whole body, and of one row's reason. */
const BODY_LIMIT = 2_000;
export const REASON_LIMIT = 500;
const ID_LIMIT = 200;
const MOST_JOB_IDS = 1_000;

const REQUEST_ID_HEADERS = ['x-request-id', 'request-id', 'x-correlation-id', 'x-amzn-requestid', 'cf-ray'];
/** A whole request's statuses where the user has named none. */
const PLAIN_ACCEPTS = [200, 201, 204];

export interface Question {
  /** What was sent; `null` where the request held no operations (a finish). */
  readonly operations: readonly Operation[] | null;
  /** The request's own accepting statuses, in place of those of `outcomes`. */
  readonly accepts: readonly number[] | undefined;
  readonly options: HttpOptions;
  readonly redactor: Redactor;
  /** Milliseconds since the epoch, for dates in `Retry-After`. */
  readonly now: number;
}

export function judge(exchange: Exchange, question: Question): BatchOutcome {
  if (exchange.kind === 'not-sent') return notApplied(exchange.code, null);
  if (exchange.kind === 'lost') return { kind: 'unknown', code: exchange.code };
  const { status } = exchange;
  if (isJobAnswer(status, question)) return judgeJob(exchange, readContent(exchange), question);
  if (status === 202) return judgeTaken(exchange, question);
  if (acceptingStatuses(question).includes(status)) return judgeSuccess(exchange, question);
  if (status < 300) return { kind: 'unknown', code: `http-${status}` };
  if (status < 400) return judgeRedirect(exchange, question);
  return judgeFailure(exchange, question);
}

function notApplied(code: string, delayMs: number | null): BatchOutcome {
  return { kind: 'not-applied', code, retryAfterMs: delayMs, tooLarge: code === 'http-413' };
}

function acceptingStatuses({ accepts, operations, options }: Question): readonly number[] {
  const { outcomes, asynchronous } = options;
  if (accepts !== undefined) return accepts;
  if (asynchronous !== undefined && operations !== null) return [];
  // A finish has no rows: per-row outcomes say nothing about it.
  if (outcomes === undefined || (operations === null && 'per_row' in outcomes)) return PLAIN_ACCEPTS;
  return 'per_row' in outcomes ? outcomes.per_row.statuses : outcomes.per_request.statuses;
}

/** Where jobs are configured; an action's own `accepts` says which of its answers are final all the same. */
function isJobAnswer(status: number, { accepts, operations, options: { asynchronous } }: Question): boolean {
  if (asynchronous === undefined || operations === null || accepts?.includes(status) === true) return false;
  return status === 202 || asynchronous.statuses.includes(status);
}

/** Rule 5: a job is staged work, never an acceptance; and an answer that names none says nothing at all. */
export function judgeJob(reply: Reply, content: ReplyContent, question: Question): BatchOutcome {
  if (content.kind === 'unreadable') return { kind: 'unknown', code: content.code };
  if (!reply.requestLeft) return { kind: 'unknown', code: 'reply-before-request' };
  const jobIds = content.kind === 'json' ? jobIdsIn(content.value, question) : [];
  if (jobIds.length === 0 || new Set(jobIds).size !== jobIds.length || !jobIds.every(isAddressable))
    return { kind: 'unknown', code: 'reply-lacks-job-id' };
  const { asynchronous } = question.options;
  const wait = retryAfterMs(reply.headers['retry-after'], question.now) ?? asynchronous?.poll_every_ms;
  return {
    kind: 'staged',
    jobIds,
    receipt: receiptOf(reply, content, question, { jobIds }),
    ...(wait === undefined ? {} : { pollAfterMs: wait }),
  };
}

function isAddressable(job: string): boolean {
  return fillPath('/{job}', { job }) !== null;
}

/** 202 is a promise, not an acceptance (rule 5). Only where the user vouches for it, and no job is named, is it one. */
function judgeTaken(reply: Reply, question: Question): BatchOutcome {
  const content = readContent(reply);
  const jobIds = content.kind === 'json' ? jobIdsIn(content.value, question) : [];
  if (jobIds.length > 0)
    return { kind: 'staged', jobIds, receipt: receiptOf(reply, content, question, { jobIds }) };
  if (acceptingStatuses(question).includes(202)) return judgeSuccess(reply, question);
  return { kind: 'unknown', code: 'http-202' };
}

function jobIdsIn(value: unknown, { options, redactor }: Question): readonly string[] {
  const found = at(value, options.job_id);
  const list: readonly unknown[] = Array.isArray(found) ? found : [found];
  const ids = list
    .filter((id) => (typeof id === 'string' && id !== '') || Number.isSafeInteger(id))
    .map(String);
  // A cut or altered id would name another job: such a reply names none.
  const usable = ids.every((id) => redactor.clean(id, ID_LIMIT) === id) && ids.length === list.length;
  return usable && ids.length <= MOST_JOB_IDS ? ids : [];
}

export function judgeSuccess(
  reply: Reply,
  question: Question,
  content: ReplyContent = readContent(reply),
): BatchOutcome {
  // Also for a 404 that the user counts as "already gone": a page says that the path is wrong, not that it is gone.
  if (content.kind === 'unreadable') return { kind: 'unknown', code: content.code };
  if (!reply.requestLeft) return { kind: 'unknown', code: 'reply-before-request' };
  const { operations, options } = question;
  const { outcomes } = options;
  if (outcomes !== undefined && 'per_row' in outcomes && operations !== null && reply.status < 400)
    return judgeRows(reply, content, question, operations);
  if (reply.status < 400 && !acceptsWhole(content, question))
    return { kind: 'unknown', code: 'reply-not-understood' };
  return { kind: 'accepted', receipt: receiptOf(reply, content, question) };
}

function judgeRows(
  reply: Reply,
  content: ReplyContent,
  question: Question,
  operations: readonly Operation[],
): BatchOutcome {
  const { options, redactor } = question;
  if (options.outcomes === undefined || !('per_row' in options.outcomes))
    throw new Error('rows are judged only where they are configured');
  if (content.kind !== 'json') return { kind: 'unknown', code: 'reply-lacks-ids' };
  const words = (text: string) => redactor.clean(text, REASON_LIMIT);
  const rows = readRows(content.value, options.outcomes.per_row, operations, options.identity_folding, words);
  if (rows.kind === 'unknown') return rows;
  return { kind: 'settled', outcomes: rows.outcomes, receipt: receiptOf(reply, content, question) };
}

function acceptsWhole(content: ReplyContent, { operations, options: { outcomes } }: Question): boolean {
  if (outcomes !== undefined && 'per_request' in outcomes && operations !== null)
    return meets(content, outcomes.per_request, operations.length);
  if (content.kind === 'empty') return true;
  if (content.kind === 'unreadable') return false;
  return agrees(content.kind === 'json' ? content.value : content.text, sentOf(operations ?? []));
}

export function meets(content: ReplyContent, { expect }: Pick<PerRequest, 'expect'>, rows: number): boolean {
  const expected = Object.entries(expect);
  if (expected.length === 0) return true;
  if (content.kind !== 'json') return false;
  return expected.every(
    ([pointer, value]) => at(content.value, pointer) === (value === 'rows' ? rows : value),
  );
}

/** Never followed: the target would be another. 303 and the rest may mean "done, look there". */
function judgeRedirect(reply: Reply, question: Question): BatchOutcome {
  const code = `http-${reply.status}`;
  if (![301, 302, 307, 308].includes(reply.status)) return { kind: 'unknown', code };
  return { kind: 'misconfigured', code, reason: reasonOf(reply, question) };
}

function judgeFailure(reply: Reply, question: Question): BatchOutcome {
  const { status } = reply;
  const { options, now } = question;
  const code = `http-${status}`;
  if (contradicts(reply, question)) return { kind: 'unknown', code: 'reply-contradicts-status' };
  if (options.nothing_applied.includes(status))
    return notApplied(code, retryAfterMs(reply.headers['retry-after'], now));
  if (options.split.includes(status))
    return { kind: 'refused', code, reason: reasonOf(reply, question), divisible: true };
  if (options.refused.includes(status)) return { kind: 'refused', code, reason: reasonOf(reply, question) };
  if (status === 401 || status === 403 || status === 407)
    return { kind: 'misconfigured', code, reason: reasonOf(reply, question) };
  return { kind: 'unknown', code };
}

function contradicts(reply: Reply, { options: { outcomes } }: Question): boolean {
  if (outcomes === undefined || !('per_row' in outcomes)) return false;
  const content = readContent(reply);
  return content.kind === 'json' && claimsAcceptance(content.value, outcomes.per_row);
}

export function reasonOf(reply: Reply, { redactor }: Pick<Question, 'redactor'>): string {
  const content = readContent(reply);
  return redactor.clean(content.kind === 'empty' ? '' : content.text, REASON_LIMIT);
}

export function receiptOf(
  reply: Reply,
  content: ReplyContent,
  { redactor }: Pick<Question, 'redactor'>,
  more: Receipt = {},
): Receipt {
  const name = REQUEST_ID_HEADERS.find((header) => typeof reply.headers[header] === 'string');
  const id = name === undefined ? undefined : reply.headers[name];
  return {
    status: reply.status,
    ...(typeof id === 'string' ? { requestId: redactor.clean(id, ID_LIMIT) } : {}),
    ...(content.kind === 'empty' ? {} : { body: redactor.clean(content.text, BODY_LIMIT) }),
    ...more,
  };
}
