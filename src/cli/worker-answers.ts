/** Asks a process of the worker's program, which alone may load the systems, and reads what it tells, a JSON text per line. */

import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../domain/errors.ts';
import type { ExitCode } from './exit-codes.ts';
import { exitOfWorker, jsonLines, spawnWorker, type WorkerProgram } from './worker-process.ts';

/** A RetlError as such a process tells it. */
export const toldError = {
  code: z.custom<ErrorCode>((code) => typeof code === 'string' && Object.hasOwn(ERROR_CODES, code)),
  details: z.record(
    z.string(),
    z.union([z.string(), z.number(), z.boolean(), z.array(z.string()).readonly()]),
  ),
};

/**
 * Calls `hear` with each line of the schema, as it comes; whatever else a library may print is passed over. Resolves to the
 * exit code once the process has ended.
 */
export async function askWorker<Line>(
  args: readonly string[],
  schema: z.ZodType<Line>,
  hear: (line: Line) => void,
  program?: WorkerProgram,
): Promise<ExitCode> {
  const child = spawnWorker(args, program);
  const ended = exitOfWorker(child);
  for await (const value of jsonLines(child)) {
    const line = schema.safeParse(value);
    if (line.success) hear(line.data);
  }
  return ended;
}
