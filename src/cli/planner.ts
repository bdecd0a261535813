/** Has a plan made by a process of the worker's program, which alone may load the systems. */

import { z } from 'zod';
import { RetlError } from '../domain/errors.ts';
import type { Plan, PlanLine } from '../domain/plan.ts';
import type { Project } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { askWorker, NOTHING_CHANGED, toldError } from './worker-answers.ts';

const line: z.ZodType<PlanLine> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('progress'), rows: z.number() }),
  z.object({ kind: z.literal('plan'), plan: z.custom<Plan>(isPlan) }),
  z.object({ kind: z.literal('refused'), code: z.enum(['plan-not-allowed', 'values-not-allowed']) }),
  z.object({
    kind: z.literal('failed'),
    ...toldError,
  }),
  z.object({ kind: z.literal('unexpected'), name: z.string() }),
]);

/** The process is of this very release: what it calls a plan is one. */
function isPlan(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'format' in value && value.format === 1;
}

export interface PlanOptions {
  /** The most members of each kind to show by their values; `null`: none. */
  readonly identities: number | null;
  readonly onProgress: (rows: number) => void;
}

/** @throws RetlError as the run would end with; Refusal `plan-not-allowed`, `values-not-allowed`, `plan-incomplete`, or as {@link askWorker} */
export async function askPlan(project: Project, mirror: string, options: PlanOptions): Promise<Plan> {
  const { identities, onProgress } = options;
  const shown = identities === null ? [] : ['--identities', String(identities)];
  const told: PlanLine[] = [];
  const args = ['--project', project.dir, '--plan', mirror, ...shown];
  const exit = await askWorker({ args, leaves: NOTHING_CHANGED }, line, (found) => {
    if (found.kind === 'progress') onProgress(found.rows);
    else told.push(found);
  });
  const [answer] = told;
  if (answer?.kind === 'plan') return answer.plan;
  if (answer?.kind === 'failed') throw new RetlError(answer.code, answer.details);
  if (answer?.kind === 'refused') throw notAllowed(answer.code);
  throw new Refusal(
    exit === EXIT.ok ? EXIT.failure : exit,
    'plan-incomplete',
    answer?.kind === 'unexpected'
      ? `The process that plans has met an unexpected ${answer.name}.`
      : 'The process that plans has ended without a plan.',
    '`retl check` looks at everything it needs; `retl worker` starts the same program.',
  );
}

/** Who compares members must be let see hashes of them; who shows them, values. */
export function notAllowed(code: 'plan-not-allowed' | 'values-not-allowed'): Refusal {
  return code === 'plan-not-allowed'
    ? new Refusal(
        EXIT.usage,
        code,
        'This role may not compare anything with the members that are held: it sees counts and codes only.',
        'Use a role with retl_reader (GRANT retl_reader TO <role>) as `journal.reader_url`, or the worker’s.',
      )
    : new Refusal(
        EXIT.usage,
        code,
        'This role may not read values, which --identities shows.',
        'Leave --identities out, or have it granted: GRANT retl_reader TO <role>; and name its URL as `journal.reader_url`.',
      );
}
