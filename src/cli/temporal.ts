/** Gives a command its connection to Temporal, and closes it whatever happens. */

import type { TemporalClient } from '../client/connect.ts';
import { resolveTemporal } from '../config/secrets.ts';
import { type Project, readSettings } from './environment.ts';

export async function withTemporal<T>(
  project: Project,
  work: (temporal: TemporalClient) => Promise<T>,
): Promise<T> {
  const settings = await readSettings(project);
  // Loaded late: help, `init` and wrong arguments answer at once.
  const { connectClient } = await import('../client/connect.ts');
  const temporal = await connectClient(resolveTemporal(settings.temporal, project.secrets));
  try {
    return await work(temporal);
  } finally {
    await temporal.close().catch(() => undefined);
  }
}
