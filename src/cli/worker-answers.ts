/** Asks a process of the worker's program, which alone may load the systems, and reads what it tells, a JSON text per line. */

import { z } from 'zod';
import { type ErrorCode, isErrorCode } from '../domain/errors.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { endOfWorker, jsonLines, spawnWorker, type WorkerProgram } from './worker-process.ts';

/** A RetlError as such a process tells it. */
export const toldError = {
  code: z.custom<ErrorCode>(isErrorCode),
  details: z.record(
    z.string(),
    z.union([z.string(), z.number(), z.boolean(), z.array(z.string()).readonly()]),
  ),
};

export interface Asked {
  readonly args: readonly string[];
  readonly program?: WorkerProgram;
  /** What there is after a process that did not get to its end, and what the next call does: in sentences. */
  readonly leaves: string;
}

/** Of what only looks. */
export const NOTHING_CHANGED = 'Nothing was changed.';

/**
 * Calls `hear` with each line of the schema, as it comes; whatever else a library may print is passed over. Resolves to the
 * exit code once the process has ended.
 * @throws Refusal `interrupted` where somebody stopped it, `killed` where something else did: what it has said is not all
 */
export async function askWorker<Line>(
  { args, program, leaves }: Asked,
  schema: z.ZodType<Line>,
  hear: (line: Line) => void,
): Promise<ExitCode> {
  const child = spawnWorker(args, program);
  const ended = endOfWorker(child);
  for await (const value of jsonLines(child)) {
    const line = schema.safeParse(value);
    if (line.success) hear(line.data);
  }
  const end = await ended;
  switch (end.kind) {
    case 'exited':
      return end.exit;
    case 'interrupted':
      throw interrupted(leaves);
    case 'killed':
      throw new Refusal(
        EXIT.failure,
        'killed',
        `The process that does the work was ended by ${end.signal}.`,
        `Where the machine has run out of memory, its own log says so. ${leaves}`,
      );
  }
}

export function interrupted(leaves: string): Refusal {
  return new Refusal(EXIT.interrupted, 'interrupted', 'Interrupted.', leaves);
}

export function isInterrupted(error: unknown): boolean {
  return error instanceof Refusal && error.exit === EXIT.interrupted;
}
