/** A project that changes its store of artifacts loses none: former ones are read (src/indexing/artifacts/chain.ts). */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chainArtifacts } from '../../src/indexing/artifacts/chain.ts';
import { FileArtifacts } from '../../src/indexing/artifacts/files.ts';
import { referenceOf } from '../../src/journal/artifact-store.ts';

let folder: string;
let stores: readonly [FileArtifacts, FileArtifacts];
const artifact = (text: string) => ({ type: 'test.bytes', bytes: Buffer.from(text) });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'retl-chain-'));
  const [before, now] = [await mkdtemp(join(folder, 'a-')), await mkdtemp(join(folder, 'b-'))];
  stores = [new FileArtifacts(before), new FileArtifacts(now)];
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test('what was put before is found, what is put goes to the new store alone, and a list has both once', async () => {
  const [before, now] = stores;
  const old = artifact('old');
  const both = artifact('both');
  for (const one of [old, both]) await before.put(one);
  await now.put(both);
  const chain = chainArtifacts(now, [before]);
  expect(await chain.put(artifact('new'))).toMatchObject({ kind: 'stored' });
  expect(await before.get(referenceOf(artifact('new')))).toEqual({ kind: 'missing' });
  expect(await chain.get(referenceOf(old))).toMatchObject({ kind: 'found' });
  expect(await chain.get(referenceOf(artifact('never')))).toEqual({ kind: 'missing' });
  const all = [old, both, artifact('new')].map(referenceOf).sort();
  expect(await chain.list(null, 10)).toEqual(all);
  const [first, ...rest] = all;
  expect(await chain.list(first ?? null, 1)).toEqual(rest.slice(0, 1));
});
