/** For `npm run replay:record` alone: real servers, real workers, one file that writes into test/replay/histories. */

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/replay/record.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
