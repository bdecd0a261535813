/** The worker of `src/worker.ts` with one more destination: the one that accepts at once. */

import { Runtime } from '@temporalio/worker';
import { DESTINATIONS, runWorker } from '../src/worker.ts';
import { acceptDestination } from './accept.ts';

const silent = () => undefined;
Runtime.install({ shutdownSignals: ['SIGTERM', 'SIGINT'] });
await runWorker(
  {
    projectDir: process.env.RETL_PROJECT ?? '.',
    destinations: [...DESTINATIONS, acceptDestination],
    logger: { info: silent, warn: silent },
  },
  () => process.stdout.write('{"ready":true}\n'),
);
