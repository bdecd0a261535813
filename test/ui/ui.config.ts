/** For `npm run test:ui` alone: a real browser on the UI of a real Temporal server; writes the pictures in docs/ui. */

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: { include: ['test/ui/temporal-ui.ts'], testTimeout: 180_000, hookTimeout: 180_000 },
});
