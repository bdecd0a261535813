/** Has a baseline seen to by a process of the worker's program, which alone may load the systems. */

import { z } from 'zod';
import type { BaselineLine, BaselineOrder, Verification } from '../domain/baseline.ts';
import { RetlError } from '../domain/errors.ts';
import type { Project } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { notAllowed } from './planner.ts';
import { askWorker, interrupted, NOTHING_CHANGED, toldError } from './worker-answers.ts';

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
  z.object({ kind: z.literal('attestable'), targetKey: z.string() }),
  z.object({ kind: z.literal('attested') }),
  z.object({ kind: z.literal('progress'), rows: z.number() }),
  z.object({ kind: z.literal('verified'), verification: z.custom<Verification>(isVerification) }),
  z.object({ kind: z.literal('refused'), code: z.enum(['plan-not-allowed', 'values-not-allowed']) }),
  z.object({ kind: z.literal('stopped') }),
  z.object({
    kind: z.literal('failed'),
    ...toldError,
  }),
  z.object({ kind: z.literal('unexpected'), name: z.string() }),
]);

/** The process is of this very release: what it calls a verification is one. */
function isVerification(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'listed' in value;
}

type Told = Exclude<BaselineLine, { kind: 'failed' | 'unexpected' | 'progress' | 'refused' | 'stopped' }>;
type Kind = Told['kind'];

const AGAIN = 'Do it again: where it was done after all, that is said, and nothing is done twice.';

/**
 * @param wanted the kind of line that answers the order.
 * @throws RetlError: nothing was recorded; Refusal `baseline-incomplete`, `plan-not-allowed`, `values-not-allowed`, or as
 *   {@link askWorker}
 */
export async function askBaseline<K extends Kind>(
  project: Project,
  order: BaselineOrder,
  wanted: K,
  onProgress: (rows: number) => void = () => undefined,
): Promise<Extract<Told, { kind: K }>> {
  const told: BaselineLine[] = [];
  const args = ['--project', project.dir, '--baseline', JSON.stringify(order)];
  const exit = await askWorker({ args, leaves: AGAIN }, line, (found) => {
    if (found.kind === 'progress') onProgress(found.rows);
    else told.push(found);
  });
  const [answer] = told;
  if (answer !== undefined && isOf(answer, wanted)) return answer;
  if (answer?.kind === 'failed') throw new RetlError(answer.code, answer.details);
  if (answer?.kind === 'refused') throw notAllowed(answer.code);
  if (answer?.kind === 'stopped') throw interrupted(NOTHING_CHANGED);
  throw new Refusal(
    exit === EXIT.ok ? EXIT.failure : exit,
    'baseline-incomplete',
    answer?.kind === 'unexpected'
      ? `The process that sees to the baseline has met an unexpected ${answer.name}.`
      : 'The process that sees to the baseline has ended without an answer.',
    AGAIN,
  );
}

function isOf<K extends Kind>(found: BaselineLine, kind: K): found is Extract<Told, { kind: K }> {
  return found.kind === kind;
}
