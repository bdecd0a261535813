/** The worker's log: one line for what was foreseen, whose words say it all; frames only for a bug, which needs them. */

import { inspect } from 'node:util';
import type { LogEntry } from '@temporalio/worker';

/** Writes an entry where DefaultLogger would. */
export function writeEntry(entry: LogEntry): void {
  process.stderr.write(`${lineOf(entry)}\n`);
}

/** Time, level, message and what belongs to it; a foreseen failure is its type and its own words, without a stack. */
export function lineOf({ level, timestampNanos, message, meta = {} }: LogEntry): string {
  const head = `${new Date(Number(timestampNanos / 1_000_000n)).toISOString()} [${level}] ${message}`;
  const { error, ...rest } = meta;
  const foreseen = foreseenWords(error);
  if (foreseen === null)
    return Object.keys(meta).length === 0 ? head : `${head} ${inspect(meta, { depth: 6 })}`;
  const { workflowId, activityType } = rest;
  const about = [workflowId, activityType].filter((part) => typeof part === 'string').join(' ');
  return `${head}${about === '' ? '' : ` (${about})`}: ${foreseen.replaceAll('\n', ' ')}`;
}

/** Failures of activities and of the workflow that are endings, and no bugs (activities/failures.ts, domain/messages.ts). */
const FORESEEN: readonly unknown[] = [
  'refused',
  'guard-held',
  'rejected',
  'invalid',
  'blocked',
  'unavailable',
  'fenced',
];

/** The error may come out of the workflow's own context, where classes are others: it is known by its name. */
function foreseenWords(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return null;
  const { name, type, message, details } = { name: '', type: '', message: '', details: [], ...pick(error) };
  const [first] = Array.isArray(details) ? details : [];
  const code: unknown = typeof first === 'object' && first !== null ? Reflect.get(first, 'code') : null;
  if (name !== 'ApplicationFailure' || !FORESEEN.includes(type) || code === 'defect') return null;
  return `${String(type)}: ${String(message)}`;
}

/** Also what stands on its prototype. */
function pick(error: object): { readonly [key: string]: unknown } {
  const get = (key: string): unknown => Reflect.get(error, key);
  return { name: get('name'), type: get('type'), message: get('message'), details: get('details') };
}
