/** The worker of `src/worker.ts` with one more destination: the one that accepts at once. */

import { Runtime } from '@temporalio/worker';
import { runWorker } from '../src/worker.ts';
import { DESTINATIONS } from '../src/worker-setup.ts';
import { acceptDestination } from './accept.ts';
import { timeStatements } from './sql-times.ts';

const silent = () => undefined;
if (process.env.BENCH_SQL) timeStatements();
Runtime.install({ shutdownSignals: ['SIGTERM', 'SIGINT'] });
await runWorker(
  {
    projectDir: process.env.RETL_PROJECT ?? '.',
    destinations: [...DESTINATIONS, acceptDestination],
    logger: { info: silent, warn: silent },
    // As in production, where nothing is compiled at start.
    ...(process.env.BENCH_BUNDLE ? { workflowBundle: process.env.BENCH_BUNDLE } : {}),
  },
  () => process.stdout.write('{"ready":true}\n'),
);
