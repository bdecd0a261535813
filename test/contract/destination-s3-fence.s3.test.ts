/** Rule 9 on an object store, and what answers of a store mean for a request. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { s3Destination } from '../../src/destinations/s3/index.ts';
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

test('rule 9: a finish that is under way while a newer attempt takes over is refused by the store itself', async () => {
  const bucket = await store.newBucket();
  const connection = store.connection();
  await replaceWith(connection, { bucket }, { run: '1', epoch: 1 }, [upload(['old'])]);
  const frozen = await writerOf(connection, { bucket }, { run: '2', epoch: 2 });
  await frozen.init();
  const request = finishOf('2', await uploadAll(frozen, [upload(['late'])]));
  const young = await writerOf(connection, { bucket }, { run: '2', epoch: 3 });
  // The write has left the frozen worker, and reaches the store after the takeover.
  store.proxy.before(isManifestPut, async () => {
    expect((await young.attach({})).kind).toBe('accepted');
  });
  expect(await frozen.finish(request)).toMatchObject({ kind: 'misconfigured', code: 'fenced' });
  expect(await store.read(bucket)).toEqual(lines(['old']));
  expect((await young.finish(request)).kind).toBe('accepted');
  expect(await store.read(bucket)).toEqual(lines(['late']));
});

test('rule 9: an abort shuts out the finish of the attempt before it', async () => {
  const bucket = await store.newBucket();
  const connection = store.connection();
  const frozen = await writerOf(connection, { bucket }, { run: '1', epoch: 1 });
  await frozen.init();
  const request = finishOf('1', await uploadAll(frozen, [upload(['late'])]));
  const aborting = await writerOf(connection, { bucket }, { run: '1', epoch: 2 });
  store.proxy.before(isManifestPut, async () => {
    expect((await aborting.abort()).kind).toBe('accepted');
  });
  expect(await frozen.finish(request)).toMatchObject({ kind: 'misconfigured', code: 'fenced' });
  expect(await store.read(bucket)).toBeNull();
  // What still arrives of its uploads counts for nothing.
  expect((await frozen.upsert(upload(['later']))).kind).toBe('accepted');
  expect(await store.read(bucket)).toBeNull();
});

test('rule 9: a prefix has one owner, also where two begin at once', async () => {
  const bucket = await store.newBucket();
  const connection = store.connection();
  const first = await writerOf(connection, { bucket }, { owner: 'log-1/vip' });
  const second = await writerOf(connection, { bucket }, { owner: 'log-2/vip', epoch: 9 });
  const both = [await Promise.all([first.init(), second.init()])].flat();
  expect(both.map(({ kind }) => kind).sort()).toEqual(['accepted', 'misconfigured']);
  expect(both).toContainEqual(expect.objectContaining({ code: 'target-owned' }));
  const loser = both[0]?.kind === 'accepted' ? second : first;
  expect((await loser.preflight()).map(({ code }) => code)).toEqual(['target-owned']);
  await store.drop(bucket, 'manifest.json');
  expect((await loser.init()).kind).toBe('accepted');
});

test('a manifest left by a mirror that has sent nothing is the next one’s, and then the former one is shut out', async () => {
  const bucket = await store.newBucket();
  const connection = store.connection();
  const former = await writerOf(connection, { bucket }, { owner: 'log-1/vip' });
  expect((await former.init()).kind).toBe('accepted');
  const heir = { owner: 'log-1/all', formerOwners: ['log-1/vip'], epoch: 2 };
  const next = await writerOf(connection, { bucket }, heir);
  expect(await next.preflight()).toEqual([]);
  expect((await next.init()).kind).toBe('accepted');
  expect(await former.init()).toMatchObject({ kind: 'misconfigured', code: 'target-owned' });
});

test('a session whose manifest is gone is not rejoined, and aborts', async () => {
  const bucket = await store.newBucket();
  const writer = await writerOf(store.connection(), { bucket });
  await writer.init();
  const uploads = await uploadAll(writer, [upload(['a'])]);
  await store.drop(bucket, 'manifest.json');
  expect(await writer.attach({})).toMatchObject({ kind: 'misconfigured', code: 'fence-not-taken' });
  expect(await writer.finish(finishOf('1', uploads))).toMatchObject({ code: 'fence-not-taken' });
  expect((await writer.abort()).kind).toBe('accepted');
  expect(await store.keys(bucket)).toEqual([]);
});

test.each(['answer-lost', 'request-lost', 'bad-gateway'] as const)(
  'rule 3: an upload that is lost (%s) is unknown, and one object by asking',
  async (fault) => {
    const bucket = await store.newBucket();
    const writer = await writerOf(store.connection(), { bucket, gzip: true });
    await writer.init();
    store.proxy.arm(fault);
    expect((await writer.upsert(upload(['a', 'b']))).kind).toBe('unknown');
    expect((await writer.reconcileBatch(upload(['a', 'b']), null)).kind).toBe('accepted');
    expect((await store.keys(bucket)).filter((key) => key.startsWith('parts/'))).toHaveLength(1);
  },
);

test('another object under the key of a part is not taken for it, nor written over', async () => {
  const bucket = await store.newBucket();
  const writer = await writerOf(store.connection(), { bucket });
  await writer.init();
  const [part] = await uploadAll(writer, [upload(['a'])]);
  await store.put(bucket, String(part?.receipt.key), 'of somebody else');
  expect(await writer.reconcileBatch(upload(['a']), null)).toMatchObject({ code: 'part-differs' });
  expect(await store.text(bucket, String(part?.receipt.key))).toBe('of somebody else');
});

test('a busy store is asked again after its own delay', async () => {
  const bucket = await store.newBucket();
  const writer = await writerOf(store.connection(), { bucket });
  await writer.init();
  store.proxy.arm('slow-down');
  expect(await writer.upsert(upload(['a']))).toEqual({
    kind: 'not-applied',
    code: 's3-slow-down',
    retryAfterMs: 7_000,
    tooLarge: false,
  });
});

test('missing rights, buckets and credentials are told apart, and nothing is applied', async () => {
  const bucket = await store.newBucket();
  const init = async (connection: ReturnType<typeof store.connection>, options: object) =>
    (await writerOf(connection, options)).init();
  const denied = { kind: 'misconfigured', code: 's3-access-denied' };
  expect(await init(store.connection({}, store.server.reader), { bucket })).toMatchObject(denied);
  expect(await init(store.connection(), { bucket: 'no-such-bucket' })).toMatchObject({
    kind: 'misconfigured',
    code: 's3-no-such-bucket',
  });
  const wrong = store.connection({ secret_access_key: 'wrong' });
  expect(await init(wrong, { bucket })).toMatchObject({ code: 's3-signature-does-not-match' });
  const unknown = store.connection({ access_key_id: 'nobody' });
  expect(await init(unknown, { bucket })).toMatchObject({ code: 's3-invalid-access-key-id' });
  expect(await init(store.connection({ endpoint: 'http://127.0.0.1:1' }), { bucket })).toMatchObject({
    kind: 'not-applied',
    code: 'connection-refused',
  });
});

test('preflight proves the rights and leaves nothing behind', async () => {
  const bucket = await store.newBucket();
  const problems = async (keys = store.server.writer, options: object = { bucket }) =>
    (await (await writerOf(store.connection({}, keys), options)).preflight()).map(({ code }) => code);
  expect(await problems()).toEqual([]);
  expect(await store.keys(bucket)).toEqual([]);
  expect(await problems(store.server.reader)).toEqual(['s3-access-denied']);
  expect(await problems(store.server.writer, { bucket: 'no-such-bucket' })).toEqual(['s3-no-such-bucket']);
  await store.put(bucket, 'manifest.json', '{"entries": []}');
  expect(await problems()).toEqual(['manifest-foreign']);
});

test('a store that takes writes without looking at their conditions is found out', async () => {
  const stored = new Set<string>();
  const careless = createServer((request, response) => {
    request.resume();
    const [path = '', query = ''] = (request.url ?? '').split('?');
    response.setHeader('etag', '"00000000000000000000000000000001"');
    if (request.method === 'PUT') stored.add(path);
    const missing = request.method === 'GET' && !query.includes('list-type') && !stored.has(path);
    if (missing) response.statusCode = 404;
    response.setHeader('content-type', 'application/xml');
    const key = [...stored].map((one) => `<Contents><Key>${one}</Key><Size>1</Size></Contents>`).join('');
    response.end(
      missing ? '<Error><Code>NoSuchKey</Code></Error>' : `<ListBucketResult>${key}</ListBucketResult>`,
    );
  });
  careless.listen(0, '127.0.0.1');
  await once(careless, 'listening');
  onTestFinished(() => void careless.close());
  const connection = s3Destination.connectionSchema.parse({
    endpoint: `http://127.0.0.1:${(careless.address() as AddressInfo).port}`,
    ...store.server.writer,
  });
  const writer = await writerOf(connection, { bucket: 'bucket' });
  expect((await writer.preflight()).map(({ code }) => code)).toEqual(['conditional-writes']);
});
