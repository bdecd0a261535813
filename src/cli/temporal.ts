/** Gives a command its connection to Temporal, and closes it whatever happens. */

import type { TemporalClient } from '../client/connect.ts';
import { resolveTemporal } from '../config/secrets.ts';
import { type Project, readSettings } from './environment.ts';

/** @param connectWithinMs as `connectClient` has it */
export async function withTemporal<T>(
  project: Project,
  work: (temporal: TemporalClient) => Promise<T>,
  connectWithinMs?: number,
): Promise<T> {
  const settings = await readSettings(project);
  const resolved = resolveTemporal(settings.temporal, project.secrets);
  // Loaded late: help, `init` and wrong arguments answer at once.
  const { connectClient } = await import('../client/connect.ts');
  const temporal = await connectClient(resolved, connectWithinMs);
  try {
    return await work(temporal);
  } finally {
    await temporal.close().catch(() => undefined);
  }
}

/** For whoever only looks, and can do without: ms to connect, and for an answer. */
export const LOOK_WITHIN_MS = 2_500;

/** As {@link withTemporal}, for whoever tells the rest where Temporal is away: it is not waited for long. */
export function lookAtTemporal<T>(
  project: Project,
  work: (temporal: TemporalClient) => Promise<T>,
): Promise<T> {
  return withTemporal(project, work, LOOK_WITHIN_MS);
}
