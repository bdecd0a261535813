/** Native replacement of a set of objects: what readers find, and what a run leaves behind however it ends. */

import { expect, test } from 'vitest';
import {
  finishOf,
  isManifestPut,
  lines,
  replaceWith,
  upload,
  uploadAll,
  useStore,
  writerOf,
} from './destination-s3-kit.ts';

const store = useStore();

const folders = async (bucket: string): Promise<readonly string[]> => {
  const parts = (await store.keys(bucket)).filter((key) => key.startsWith('parts/'));
  return [...new Set(parts.map((key) => key.split('/')[1] ?? ''))].map((folder) =>
    folder.replace(/^.*-/, ''),
  );
};

test('the manifest names immutable parts of one run, and a reader that follows it finds the set', async () => {
  const bucket = await store.newBucket();
  const options = { bucket, prefix: 'vip/', gzip: true };
  const requests = [upload(['a', 'b']), upload(['c'])];
  await replaceWith(store.connection(), options, { run: '7', epoch: 3 }, requests);
  const manifest = JSON.parse((await store.text(bucket, 'vip/manifest.json')) ?? '');
  expect(manifest).toMatchObject({
    format: 'retl-mirror/1',
    published: { generation: '7', members: 3, compression: 'gzip', parts: [{ members: 2 }, { members: 1 }] },
    writer: { owner: 'log-1/vip', epoch: '3' },
  });
  const keys = requests.map(({ batchId }) => expect.stringMatching(`-7/${batchId.slice(7)}.ndjson.gz$`));
  expect(manifest.published.parts.map(({ key }: { key: string }) => key)).toEqual(keys);
  expect(await store.read(bucket, 'vip/')).toEqual(lines(['a', 'b', 'c']));
});

test('before the first finish there is a manifest that publishes nothing; an empty set is one with no parts', async () => {
  const bucket = await store.newBucket();
  const writer = await writerOf(store.connection(), { bucket });
  expect((await writer.init()).kind).toBe('accepted');
  expect(await store.read(bucket)).toBeNull();
  expect(await writer.checkEmpty()).toEqual({ kind: 'empty' });
  expect((await writer.finish(finishOf('1', []))).kind).toBe('accepted');
  expect(await store.read(bucket)).toEqual([]);
  expect(await writer.checkEmpty()).toEqual({ kind: 'not-empty' });
});

test('a reader that has the former manifest still finds its parts, until they are neither kept nor young', async () => {
  const bucket = await store.newBucket();
  const [start, hour] = [Date.UTC(2030, 0, 1), 3_600_000];
  const options = { bucket, keep_superseded: 1, keep_superseded_ms: hour };
  const at = (ms: number) => ({ now: () => start + ms });
  const connection = store.connection();
  await replaceWith(connection, options, { run: '1', epoch: 1, ...at(0) }, [upload(['a'])]);
  await replaceWith(connection, options, { run: '2', epoch: 2, ...at(1) }, [upload(['b'])]);
  await replaceWith(connection, options, { run: '3', epoch: 3, ...at(2) }, [upload(['c'])]);
  const tidy = async (ms: number): Promise<void> => {
    const writer = await writerOf(connection, options, { run: '4', epoch: 4, ...at(ms) });
    for (let steps = 0; (await writer.tidy?.())?.kind === 'more'; steps++) expect(steps).toBeLessThan(10);
  };
  await tidy(hour);
  expect(await folders(bucket)).toEqual(['1', '2', '3']);
  // The first was superseded at 1, and is not the last one before the current: nothing keeps it longer.
  await tidy(hour + 1);
  expect(await folders(bucket)).toEqual(['2', '3']);
  await tidy(1000 * hour);
  expect(await folders(bucket)).toEqual(['2', '3']);
  expect(await store.read(bucket)).toEqual(lines(['c']));
});

test('tidying takes what an abandoned run has left, and nothing of others or of a run to come', async () => {
  const bucket = await store.newBucket();
  const connection = store.connection();
  const options = { bucket, keep_superseded: 0, keep_superseded_ms: 0 };
  const abandoned = await writerOf(connection, options, { run: '1', epoch: 1 });
  await abandoned.init();
  await uploadAll(abandoned, [upload(['left'])]);
  await replaceWith(connection, options, { run: '2', epoch: 2 }, [upload(['a'])]);
  const next = await writerOf(connection, options, { run: '3', epoch: 3 });
  await next.init();
  await uploadAll(next, [upload(['b'])]);
  await store.put(bucket, 'parts/other-1/x.ndjson', 'x');
  await store.put(bucket, 'readme.txt', 'x');
  expect(await folders(bucket)).toEqual(['1', '2', '3', '1']);
  while ((await next.tidy?.())?.kind === 'more');
  const left = await store.keys(bucket);
  expect(await folders(bucket)).toEqual(['2', '3', '1']);
  expect(left).toEqual(expect.arrayContaining(['parts/other-1/x.ndjson', 'readme.txt', 'manifest.json']));
});

test('what a run leaves behind: a cancelled one its parts, an aborted one nothing; readers notice neither', async () => {
  const bucket = await store.newBucket();
  const connection = store.connection();
  await replaceWith(connection, { bucket }, { run: '1', epoch: 1 }, [upload(['a'])]);
  const cancelled = await writerOf(connection, { bucket }, { run: '2', epoch: 2 });
  await cancelled.init();
  const before = await uploadAll(cancelled, [upload(['b'])]);
  await cancelled.close();
  expect(await folders(bucket)).toEqual(['1', '2']);
  // A later attempt of that run goes on from there.
  const resumed = await writerOf(connection, { bucket }, { run: '2', epoch: 3 });
  expect((await resumed.attach({})).kind).toBe('accepted');
  expect((await resumed.reconcileBatch(upload(['b']), null)).kind).toBe('accepted');
  expect(before).toHaveLength(1);
  const aborting = await writerOf(connection, { bucket }, { run: '2', epoch: 4 });
  expect((await aborting.abort()).kind).toBe('accepted');
  expect((await aborting.abort()).kind).toBe('accepted');
  expect(await folders(bucket)).toEqual(['1']);
  expect(await store.read(bucket)).toEqual(lines(['a']));
});

test('an abort takes away more parts than one request can', async () => {
  const bucket = await store.newBucket();
  const connection = store.connection();
  const writer = await writerOf(connection, { bucket });
  await writer.init();
  const [first] = await uploadAll(writer, [upload(['a'])]);
  const folder = String(first?.receipt.key).replace(/[^/]*$/, '');
  for (let from = 0; from < 1_100; from += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, n) => store.put(bucket, `${folder}${from + n}`, 'x')));
  }
  expect((await writer.abort()).kind).toBe('accepted');
  expect(await folders(bucket)).toEqual([]);
});

test('an abort never takes what the manifest names', async () => {
  const bucket = await store.newBucket();
  const writer = await replaceWith(store.connection(), { bucket }, { run: '1', epoch: 1 }, [upload(['a'])]);
  expect(await writer.abort()).toMatchObject({ kind: 'accepted', receipt: { kept: 'published' } });
  expect(await store.read(bucket)).toEqual(lines(['a']));
});

test('the finish compares what it publishes with what the store has', async () => {
  const bucket = await store.newBucket();
  const connection = store.connection();
  await replaceWith(connection, { bucket }, { run: '1', epoch: 1 }, [upload(['old'])]);
  const writer = await writerOf(connection, { bucket }, { run: '2', epoch: 2 });
  await writer.init();
  const uploads = await uploadAll(writer, [upload(['a', 'b']), upload(['c'])]);
  const key = String(uploads[1]?.receipt.key);
  expect(await writer.finish(finishOf('2', uploads, 4))).toMatchObject({
    kind: 'refused',
    code: 'members-differ',
  });
  expect(await writer.finish(finishOf('2', uploads.slice(1), 3))).toMatchObject({ code: 'members-differ' });
  const whole = (await store.text(bucket, key)) ?? '';
  await store.put(bucket, key, whole.replace('"c"', '"x"'));
  expect(await writer.finish(finishOf('2', uploads))).toMatchObject({
    kind: 'refused',
    code: 'parts-missing',
  });
  await store.drop(bucket, key);
  expect(await writer.finish(finishOf('2', uploads))).toMatchObject({
    kind: 'refused',
    code: 'parts-missing',
  });
  expect(await store.read(bucket)).toEqual(lines(['old']));
  await store.put(bucket, key, whole);
  expect((await writer.finish(finishOf('2', uploads))).kind).toBe('accepted');
  expect(await store.read(bucket)).toEqual(lines(['a', 'b', 'c']));
});

test.each([false, true])(
  'an upload that a person resolved as accepted is what the store holds of it, or the finish is refused (gzip: %s)',
  async (gzip) => {
    const bucket = await store.newBucket();
    const connection = store.connection();
    const options = { bucket, gzip };
    await replaceWith(connection, options, { run: '1', epoch: 1 }, [upload(['old'])]);
    const writer = await writerOf(connection, options, { run: '2', epoch: 2 });
    await writer.init();
    const [first, second] = await uploadAll(writer, [upload(['a', 'b']), upload(['c'])]);
    if (first === undefined || second === undefined) throw new Error('two uploads');
    const resolved = { ...first, receipt: { resolved: 'accepted' } };
    const refused = { kind: 'refused', code: 'upload-not-proven' };
    const never = { ...resolved, batchId: upload(['d', 'e']).batchId };
    expect(await writer.finish(finishOf('2', [never, second]))).toMatchObject(refused);
    expect(await writer.finish(finishOf('2', [{ ...resolved, members: 3 }, second]))).toMatchObject(refused);
    expect(await store.read(bucket)).toEqual(lines(['old']));
    expect((await writer.finish(finishOf('2', [resolved, second]))).kind).toBe('accepted');
    expect(await store.read(bucket)).toEqual(lines(['a', 'b', 'c']));
  },
);

test.each(['answer-lost', 'request-lost', 'bad-gateway'] as const)(
  'rule 10: a finish that is lost (%s) is unknown, and is published once by asking',
  async (fault) => {
    const bucket = await store.newBucket();
    const connection = store.connection();
    await replaceWith(connection, { bucket }, { run: '1', epoch: 1 }, [upload(['old'])]);
    const writer = await writerOf(connection, { bucket }, { run: '2', epoch: 2 });
    await writer.init();
    const request = finishOf('2', await uploadAll(writer, [upload(['new'])]));
    store.proxy.arm(fault, isManifestPut);
    expect((await writer.finish(request)).kind).toBe('unknown');
    expect(await store.read(bucket)).toEqual(lines([fault === 'answer-lost' ? 'new' : 'old']));
    const young = await writerOf(connection, { bucket }, { run: '2', epoch: 3 });
    expect((await young.reconcileFinish(request, null)).kind).toBe('accepted');
    expect(await store.read(bucket)).toEqual(lines(['new']));
    const { superseded } = JSON.parse((await store.text(bucket, 'manifest.json')) ?? '');
    expect(superseded).toMatchObject([{ generation: '1' }]);
  },
);
