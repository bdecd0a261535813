import { expect, test } from 'vitest';
import { SEARCH_ATTRIBUTES } from '../../src/dev/temporal-server.ts';
import { startDevServer, startTimeSkipping } from '../support/temporal.ts';

test('the development server knows the search attributes that the worker sets', async () => {
  const server = await startDevServer();
  try {
    const found = await server.env.connection.operatorService.listSearchAttributes({ namespace: 'default' });
    expect(Object.keys(found.customAttributes ?? {})).toEqual(expect.arrayContaining([...SEARCH_ATTRIBUTES]));
  } finally {
    await server.stop();
  }
});

test('the time-skipping server jumps over a wait', async () => {
  const env = await startTimeSkipping();
  try {
    const before = await env.currentTimeMs();
    await env.sleep('1 day');
    expect((await env.currentTimeMs()) - before).toBeGreaterThanOrEqual(86_400_000);
  } finally {
    await env.teardown();
  }
});
