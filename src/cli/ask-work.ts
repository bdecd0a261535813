/** What `retl find` and `retl explain` have asked of indexes by the program that may load their systems. */

import { z } from 'zod';
import type { AskLine, AskOrder, Source } from '../domain/ask-messages.ts';
import { ERROR_CODES, type ErrorCode, RetlError } from '../domain/errors.ts';
import type { Project } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { askWorker, NOTHING_CHANGED, toldError } from './worker-answers.ts';

const u64 = z.string();
const source = z.object({
  index: z.string().nullable(),
  position: u64,
  lag: z.object({ positions: u64, ms: z.number() }),
});
const member = z.object({
  mirror: z.string(),
  target: u64,
  identityHash: z.string(),
  identity: z.string().nullable(),
  payloadHash: z.string(),
  runId: u64,
  position: u64,
  acceptedAt: z.string(),
  since: u64,
  sinceAt: z.string(),
});
const change = z.object({
  action: z.enum(['add', 'change', 'remove', 'held']),
  position: u64,
  at: z.string(),
  runId: u64,
  payloadHash: z.string().nullable(),
});

const line: z.ZodType<AskLine> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('passed-over'), index: z.string(), code: toldError.code }),
  z.object({ kind: z.literal('member'), member }),
  z.object({ kind: z.literal('found'), source, more: z.boolean() }),
  z.object({
    kind: z.literal('changes'),
    identityHash: z.string(),
    source,
    changes: z.array(change),
    more: z.boolean(),
  }),
  z.object({
    kind: z.literal('since'),
    identityHash: z.string(),
    source,
    since: z.object({ position: u64, at: z.string() }).nullable(),
  }),
  z.object({ kind: z.literal('too-long'), ms: z.number() }),
  z.object({ kind: z.literal('refused'), ...toldError }),
]);

export type AskAnswer = Exclude<AskLine, { readonly kind: 'refused' }>;
export type PassedOver = Extract<AskLine, { readonly kind: 'passed-over' }>;

/** @throws RetlError as the work was refused; Refusal `ask-incomplete`, or as {@link askWorker} */
export async function askIndexes(project: Project, order: AskOrder): Promise<readonly AskAnswer[]> {
  const answers: AskAnswer[] = [];
  const refusals: RetlError[] = [];
  const hear = (found: AskLine) => {
    if (found.kind === 'refused') refusals.push(new RetlError(found.code, found.details));
    else answers.push(found);
  };
  const args = ['--project', project.dir, JSON.stringify(order)];
  const exit = await askWorker({ args, program: 'worker-ask', leaves: NOTHING_CHANGED }, line, hear);
  const [refused] = refusals;
  if (refused !== undefined) throw refused;
  const late = answers.find((answer) => answer.kind === 'too-long');
  if (late !== undefined)
    throw new Refusal(
      EXIT.failure,
      'find-too-long',
      `The journal holds more than could be looked through in ${late.ms / 1_000} s${passedWords(answers)}.`,
      'Have an index of the kind membership-search (docs/indexes.md), name mirrors with --mirror, or give a whole identity as a JSON object, which is looked up.',
    );
  if (exit === EXIT.ok) return answers;
  throw new Refusal(
    exit,
    'ask-incomplete',
    'The process that asks the indexes and the journal has ended before it was done.',
    'What it wrote above says why; `retl check` looks at everything it needs.',
  );
}

/** Who has answered, in words; with the reasons of those that would not do. */
export function sourceWords({ index, position, lag }: Source, passed: readonly PassedOver[]): string {
  const behind = lag.positions === '0' ? '' : `, ${lag.positions} positions (${lag.ms} ms) behind`;
  const who = index === null ? 'the journal' : `the index ${index}`;
  return [`As of log position ${position}${behind}, from ${who}.`, ...passed.map(passedLine)].join('\n');
}

/** Why it was the journal that was asked. */
function passedWords(answers: readonly AskAnswer[]): string {
  const passed = answers.flatMap((one) => (one.kind === 'passed-over' ? [`${one.index}: ${one.code}`] : []));
  return passed.length === 0 ? ', and no index can be asked' : ` (${passed.join(', ')})`;
}

export function passedLine({ index, code }: Omit<PassedOver, 'kind'>): string {
  return `${index} was passed over, ${code}: ${meaning(code)}`;
}

function meaning(code: ErrorCode): string {
  const text = ERROR_CODES[code].meaning;
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}
