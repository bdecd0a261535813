/** Starts the one PostgreSQL server that all test files share; each test makes databases of its own on it. */

import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    postgresAdminUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startEmbeddedPostgres({ kind: 'throw-away' });
  project.provide('postgresAdminUrl', server.adminUrl);
  return () => server.stop();
}
