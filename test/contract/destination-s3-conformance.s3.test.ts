/** Destination `s3` against the conformance kit, on a real object store. */

import { expect, test } from 'vitest';
import { conformanceChecks } from '../../src/destinations/conformance.ts';
import type { ConformanceHarness } from '../../src/destinations/conformance-harness.ts';
import { type S3Connection, type S3Options, s3Destination } from '../../src/destinations/s3/index.ts';
import { isManifestPut, useStore } from './destination-s3-kit.ts';

const store = useStore();

async function createHarness(gzip: boolean): Promise<ConformanceHarness<S3Connection, S3Options>> {
  const connection = store.connection({ timeout_ms: 20_000 });
  const at = (place: S3Connection, more: object) => ({
    connection: place,
    options: s3Destination.optionsSchema.parse({ bucket, prefix: 'audiences/vip', ...more }),
  });
  let bucket = await store.newBucket();
  const options = (): S3Options => at(connection, { gzip }).options;
  const identity = (n: number) => ({ id: `me'm"ber 😀 ${n}` });
  const place = `http://127.0.0.1:${store.proxy.port}`;
  const elsewhere = (more: object) => store.connection(more);
  return {
    adapter: {
      ...s3Destination,
      open: (to, given, context) => s3Destination.open(to, { ...given, bucket }, context),
    },
    connection,
    options: options(),
    sameTargets: [
      at(connection, { prefix: 'audiences/vip/', gzip: !gzip }),
      at(elsewhere({ endpoint: `${place}/` }), {}),
      at(elsewhere({ access_key_id: 'another', secret_access_key: 'another', region: 'eu-west-1' }), {}),
      at(elsewhere({ path_style: false }), {}),
    ],
    otherTargets: [
      at(connection, { prefix: 'audiences/VIP' }),
      at(connection, { prefix: '' }),
      at(connection, { bucket: 'another' }),
      at(elsewhere({ endpoint: 'https://store.example' }), {}),
      at(elsewhere({ endpoint: undefined }), {}),
    ],
    unreachable: at(elsewhere({ endpoint: 'http://127.0.0.1:1' }), {}),
    secrets: [store.server.writer.secret_access_key, store.server.writer.access_key_id],
    member: (n, variant) => ({
      identity: identity(n),
      upsert: { ...identity(n), note: { variant, text: '\\ "\n' } },
      remove: identity(n),
    }),
    held: async () => ((await store.read(bucket, 'audiences/vip/')) ?? []).map((line) => JSON.parse(line)),
    reset: async () => {
      store.proxy.arm('none');
      bucket = await store.newBucket();
    },
    faults: {
      'nothing-applied': () => store.proxy.arm('slow-down'),
      'answer-lost': () => store.proxy.arm('answer-lost'),
      'never-answers': () => store.proxy.arm('silent'),
      // The finish finds its fence taken, so that it writes the manifest once.
      'finish-lost': () => store.proxy.arm('answer-lost', isManifestPut),
    },
  };
}

test.each([false, true])('conformance: every check of the kit that applies, gzip: %s', async (gzip) => {
  const checks = conformanceChecks(await createHarness(gzip));
  const names = checks.map(({ name }) => name);
  expect(names).toContain('a lost answer is unknown until it is reconciled');
  expect(names.filter((name) => name.includes('replace:'))).toHaveLength(12);
  const broken: string[] = [];
  for (const check of checks) {
    await check.run().catch((error: unknown) => broken.push(`${check.name}: ${String(error)}`));
  }
  expect(broken).toEqual([]);
});
