/** Has a baseline's file looked at, or imported, by a process of the worker's program, which alone may load the systems. */

import { z } from 'zod';
import type { BaselineLine, BaselineOrder } from '../domain/baseline.ts';
import { ERROR_CODES, type ErrorCode, RetlError } from '../domain/errors.ts';
import type { Project } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { exitOfWorker, jsonLines, spawnWorker } from './worker-process.ts';

const line: z.ZodType<BaselineLine> = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('summary'),
    summary: z.object({
      rows: z.number(),
      members: z.number(),
      collapsed: z.number(),
      unknown: z.array(z.string()).readonly(),
      digest: z.string(),
    }),
  }),
  z.object({ kind: z.literal('imported'), members: z.number() }),
  z.object({
    kind: z.literal('failed'),
    code: z.custom<ErrorCode>((code) => typeof code === 'string' && Object.hasOwn(ERROR_CODES, code)),
    details: z.record(
      z.string(),
      z.union([z.string(), z.number(), z.boolean(), z.array(z.string()).readonly()]),
    ),
  }),
  z.object({ kind: z.literal('unexpected'), name: z.string() }),
]);

type Answer = Extract<BaselineLine, { kind: 'summary' | 'imported' }>;

/** @throws RetlError: nothing was imported; Refusal `baseline-incomplete` */
export async function askBaseline(project: Project, order: BaselineOrder): Promise<Answer> {
  const child = spawnWorker(['--project', project.dir, '--baseline', JSON.stringify(order)]);
  const ended = exitOfWorker(child);
  const told: BaselineLine[] = [];
  for await (const value of jsonLines(child)) {
    const found = line.safeParse(value).data;
    if (found !== undefined) told.push(found);
  }
  const exit = await ended;
  const [answer] = told;
  if (answer?.kind === 'summary' || answer?.kind === 'imported') return answer;
  if (answer?.kind === 'failed') throw new RetlError(answer.code, answer.details);
  throw new Refusal(
    exit === EXIT.ok ? EXIT.failure : exit,
    'baseline-incomplete',
    answer?.kind === 'unexpected'
      ? `The process that imports has met an unexpected ${answer.name}.`
      : 'The process that imports has ended without an answer.',
    'Import again: where it was imported after all, that is said, and nothing is imported twice.',
  );
}
