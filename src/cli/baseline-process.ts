/** Has a baseline's file looked at, or imported, by a process of the worker's program, which alone may load the systems. */

import { z } from 'zod';
import type { BaselineLine, BaselineOrder } from '../domain/baseline.ts';
import { RetlError } from '../domain/errors.ts';
import type { Project } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { askWorker, toldError } from './worker-answers.ts';

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
    ...toldError,
  }),
  z.object({ kind: z.literal('unexpected'), name: z.string() }),
]);

type Answer = Extract<BaselineLine, { kind: 'summary' | 'imported' }>;

/** @throws RetlError: nothing was imported; Refusal `baseline-incomplete` */
export async function askBaseline(project: Project, order: BaselineOrder): Promise<Answer> {
  const told: BaselineLine[] = [];
  const args = ['--project', project.dir, '--baseline', JSON.stringify(order)];
  const exit = await askWorker(args, line, (found) => told.push(found));
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
