/** A search engine that accepts every connection and never answers: whoever asks has an end of it, and falls back (docs/indexes.md). */

import { createServer, type Server } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask } from '../../src/indexing/engine/ask.ts';
import { openEngine } from '../../src/indexing/engine/client.ts';
import { engineDefinition, MEMBERSHIP_SEARCH } from '../../src/indexing/engine/form.ts';
import { engineOptions } from '../../src/indexing/engine/options.ts';
import { engineSearchReader } from '../../src/indexing/engine/reader.ts';

let server: Server;
let url: string;
let requests: number;
beforeEach(async () => {
  requests = 0;
  server = createServer((socket) => {
    socket.on('data', () => {
      requests += 1;
    });
    socket.on('error', () => undefined);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  url = `http://127.0.0.1:${address.port}`;
});
afterEach(async () => {
  await new Promise((closed) => server.close(closed));
});

const away = { code: 'index.unavailable' };

test.each(['opensearch', 'elasticsearch'] as const)(
  'a reader of %s says that the index is away, whatever patience builders are configured to have',
  async (system) => {
    const definition = engineDefinition('people', MEMBERSHIP_SEARCH);
    const reader = engineSearchReader({ definition, system, options: { url, timeout_ms: 3_600_000 } });
    const search = { hashes: [], text: null, mirrors: null, limit: 1 };
    await expect(reader.search(search)).rejects.toMatchObject(away);
    expect(requests).toBe(1);
    await reader.close();
  },
  30_000,
);

test('a builder has one budget over all of its tries, and not one for each', async () => {
  const client = await openEngine('opensearch', engineOptions('opensearch', { url, timeout_ms: 200 }));
  const patience = { tries: 50, firstMs: 1, longestMs: 1, budgetMs: 150 };
  await expect(ask({ client, patience }, { method: 'GET', path: '/' })).rejects.toMatchObject(away);
  expect(requests).toBe(1);
  await client.close();
});
