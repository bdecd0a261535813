/** Nothing is started on a configuration with an error (design.md section 10): mirrors that are here are read first. */

import { z } from 'zod';
import type { Problem } from '../config/problem.ts';
import type { Project } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { InvalidProject, Refusal } from './failures.ts';
import { askWorker } from './worker-answers.ts';

const answer: z.ZodType<{ readonly problems: readonly Problem[] }> = z.object({
  problems: z.array(
    z.object({
      file: z.string(),
      line: z.number().nullable(),
      column: z.number().nullable(),
      path: z.string(),
      message: z.string(),
      remedy: z.string(),
    }),
  ),
});

/**
 * Reads the files of these mirrors with the systems' own schemas, as the worker will. Of one that is configured elsewhere there
 * is nothing to read here, and no secret is looked at: both are the worker's.
 * @throws InvalidProject with every problem; Refusal `check-incomplete`, or as {@link askWorker}
 */
export async function requireValid(project: Project, mirrors: readonly string[]): Promise<void> {
  const answers: (readonly Problem[])[] = [];
  const asked = {
    args: ['--project', project.dir, ...mirrors],
    program: 'worker-load',
    leaves: 'Nothing was started.',
  } as const;
  await askWorker(asked, answer, ({ problems }) => answers.push(problems));
  const told = answers.at(-1);
  if (told === undefined)
    throw new Refusal(
      EXIT.failure,
      'check-incomplete',
      'The process that reads the mirrors has ended without an answer; nothing was started.',
      'What it wrote above says why; `retl check` looks at the whole project.',
    );
  if (told.length > 0) throw new InvalidProject(told);
}
