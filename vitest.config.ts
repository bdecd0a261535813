import { defineConfig } from 'vitest/config';

const NEEDS_SERVERS = ['test/**/*.{pg,s3,search,temporal,e2e}.test.ts'];
/** Minutes instead of seconds; each has an npm script of its own, and `npm test` leaves them out. */
const CRASH = ['test/**/*.crash.test.ts'];
const SCALE = ['test/**/*.scale.test.ts'];
/**
 * Whole systems that wait for heartbeats, deadlines and restarts: some ten minutes of their own (`npm run test:long`), run by
 * the gate in every case. What each holds has its short form in the default tests.
 */
const LONG = [
  'test/cases/messy-{http,operations,sources,values}.e2e.test.ts',
  'test/cases/{answers,explain,jobs,metrics,plan,plan-values,removal-of-wanted,tables}.e2e.test.ts',
  'test/cli/{dev-again.e2e,find.e2e,follow.temporal,index-forget.e2e,index.e2e,other-queue.temporal,rights.pg,terminal.temporal}.test.ts',
  'test/e2e/{schedules,schedules-missed}.temporal.test.ts',
  'test/indexing/{engine,engine-forget,engine-faults}.search.test.ts',
  'test/e2e/{approve,asynchronous,attest,baseline,changed-route,control-phases,deploy,frozen-worker,index-wakes,killed-jobs}.e2e.test.ts',
  'test/e2e/{lost-parts,maintenance,native-replace,parked,pending-steps,release,resolve,table-identity,verify}.e2e.test.ts',
];
const POSTGRES = ['test/support/global-setup.ts'];

/**
 * One project per need, so that the pure tests start no server. PostgreSQL is started once per run, and only when a
 * selected file needs it; Temporal servers are started by the files that need them.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'pure',
          include: ['test/**/*.test.ts'],
          exclude: [...NEEDS_SERVERS, ...CRASH, ...SCALE],
        },
      },
      {
        extends: true,
        test: { name: 'servers', include: NEEDS_SERVERS, exclude: LONG, globalSetup: POSTGRES },
      },
      { extends: true, test: { name: 'long', include: LONG, globalSetup: POSTGRES } },
      {
        extends: true,
        test: { name: 'crash', include: CRASH, globalSetup: POSTGRES, testTimeout: 300_000 },
      },
      {
        extends: true,
        // Alone on the machine: these measure.
        test: {
          name: 'scale',
          include: SCALE,
          globalSetup: POSTGRES,
          fileParallelism: false,
          testTimeout: 900_000,
        },
      },
    ],
  },
});
