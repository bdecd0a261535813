import { defineConfig } from 'vitest/config';

const NEEDS_SERVERS = ['test/**/*.{pg,temporal,e2e}.test.ts'];
/** Minutes instead of seconds: `npm run test:crash`, `npm run test:scale`. */
const SLOW = ['test/crash/**', 'test/scale/**'];

/**
 * One project per need, so that the pure tests start no server. PostgreSQL is started once per run, and only when a
 * selected file needs it.
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
        test: { name: 'pure', include: ['test/**/*.test.ts'], exclude: [...NEEDS_SERVERS, ...SLOW] },
      },
      {
        extends: true,
        test: {
          name: 'servers',
          include: NEEDS_SERVERS,
          exclude: SLOW,
          globalSetup: ['test/support/global-setup.ts'],
        },
      },
    ],
  },
});
