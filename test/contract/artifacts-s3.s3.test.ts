/** Artifacts as objects of a real store, with a proxy in between that loses answers. */

import { PutObjectCommand } from '@aws-sdk/client-s3';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hexOf } from '../../src/domain/ids.ts';
import { lookAtStore } from '../../src/indexing/artifacts/look.ts';
import { type OpenArtifacts, openArtifacts } from '../../src/indexing/artifacts/open.ts';
import { artifactOptions } from '../../src/indexing/artifacts/options.ts';
import { referenceOf } from '../../src/journal/artifact-store.ts';
import { describeArtifactStore, packed } from './artifacts.contract.ts';
import { isPut, useStore } from './destination-s3-kit.ts';

const s3 = useStore();
const PREFIX = 'retl/artifacts/';

const NO_POOL = new pg.Pool({ host: '/nowhere' });
const NO_JOURNAL = { query: () => Promise.reject(new Error('not asked')) };

function open(
  bucket: string,
  keys = s3.server.writer,
  endpoint = s3.server.endpoint,
): Promise<OpenArtifacts> {
  const options = artifactOptions.parse({ type: 's3', bucket, prefix: PREFIX, endpoint, ...keys });
  return openArtifacts(options, NO_JOURNAL, '/');
}

describeArtifactStore('S3', async () => {
  const bucket = await s3.newBucket();
  const [one, other] = [await open(bucket), await open(bucket)];
  // Neighbours in the bucket that are no artifacts.
  await s3.put(bucket, `${PREFIX}sha256/README`, 'x');
  await s3.put(bucket, `${PREFIX}sha256/${'0'.repeat(64)}.bak`, 'x');
  await s3.put(bucket, `sha256/${'0'.repeat(64)}`, 'x');
  return {
    store: one.store,
    other: other.store,
    replace: async (reference, by) => {
      const Key = `${PREFIX}sha256/${hexOf(reference)}`;
      await s3.admin.send(new PutObjectCommand({ Bucket: bucket, Key, Body: packed(by) }));
    },
    remove: (reference) => s3.drop(bucket, `${PREFIX}sha256/${hexOf(reference)}`),
    close: async () => {
      one.close();
      other.close();
    },
  };
});

describe('a bucket of artifacts', () => {
  const given = { type: 'test.bytes', bytes: Buffer.from('content') };
  const reference = referenceOf(given);

  async function scene(keys = s3.server.writer, endpoint = `http://127.0.0.1:${s3.proxy.port}`) {
    const bucket = await s3.newBucket();
    const { store, close } = await open(bucket, keys, endpoint);
    onTestFinished(close);
    return { bucket, store };
  }

  test('blind-replay: a put whose answer was lost is sent again, and finds its own object', async () => {
    for (const fault of ['answer-lost', 'request-lost', 'bad-gateway', 'slow-down'] as const) {
      const { bucket, store } = await scene();
      s3.proxy.arm(fault, isPut);
      const { kind } = await store.put(given);
      expect(kind).toBe(fault === 'answer-lost' ? 'present' : 'stored');
      expect(await s3.keys(bucket)).toEqual([`${PREFIX}sha256/${hexOf(reference)}`]);
      expect(await store.get(reference)).toMatchObject({ kind: 'found' });
    }
  });

  test('an object that was taken away between the refusal and the look is written again', async () => {
    const { bucket, store } = await scene();
    await store.put(given);
    s3.proxy.before(
      (request) => request.method === 'GET',
      () => s3.drop(bucket, `${PREFIX}sha256/${hexOf(reference)}`),
    );
    expect(await store.put(given)).toEqual({ kind: 'stored', reference });
    expect(await store.get(reference)).toMatchObject({ kind: 'found' });
  });

  test('an object that is longer than any artifact is damaged', async () => {
    const { bucket, store } = await scene();
    const Key = `${PREFIX}sha256/${hexOf(reference)}`;
    await s3.admin.send(new PutObjectCommand({ Bucket: bucket, Key, Body: Buffer.alloc(17_000_000) }));
    expect(await store.get(reference)).toEqual({ kind: 'corrupt' });
  });

  test('missing rights, a missing bucket and a wrong key are settings to mend, and say no more than a code', async () => {
    const reader = await scene(s3.server.reader);
    const denied = { code: 'artifact.misconfigured', details: { code: 'AccessDenied', reference } };
    await expect(reader.store.put(given)).rejects.toMatchObject(denied);
    expect(await reader.store.get(reference)).toEqual({ kind: 'missing' });
    const { store: elsewhere, close } = await open('no-such-bucket', s3.server.reader);
    onTestFinished(close);
    for (const work of [() => elsewhere.get(reference), () => elsewhere.list(null, 1)])
      await expect(work()).rejects.toMatchObject({ code: 'artifact.misconfigured' });
    const stranger = await scene({ access_key_id: 'stranger', secret_access_key: 'top secret' });
    const error: unknown = await stranger.store.get(reference).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'artifact.misconfigured' });
    expect(String(error)).not.toMatch(/stranger|secret/);
  });

  test('a store that is away is unavailable, never empty', async () => {
    const { store } = await scene(s3.server.writer, 'http://127.0.0.1:1');
    const away = { code: 'artifact.unavailable', details: { code: 'ECONNREFUSED' } };
    for (const work of [() => store.get(reference), () => store.put(given), () => store.list(null, 1)])
      await expect(work()).rejects.toMatchObject(away);
  });
});

describe('a bucket that is looked at', () => {
  const look = async (bucket: string, keys: typeof s3.server.writer, isWritten = true) => {
    const place = { type: 's3', bucket, prefix: PREFIX, endpoint: s3.server.endpoint, ...keys };
    const options = artifactOptions.parse(place);
    return lookAtStore({ options, projectDir: '/', isWritten }, NO_POOL);
  };

  test('has one empty artifact afterwards, however often it is looked at', async () => {
    const bucket = await s3.newBucket();
    const probe = `${PREFIX}sha256/${hexOf(referenceOf({ type: 'retl.probe', bytes: new Uint8Array() }))}`;
    for (let n = 0; n < 2; n += 1)
      expect(await look(bucket, s3.server.writer)).toContain('an empty artifact stays there');
    expect(await s3.keys(bucket)).toEqual([probe]);
    // What is there already answers nobody who may not write.
    await expect(look(bucket, s3.server.reader)).rejects.toMatchObject({
      code: 'artifact.misconfigured',
      details: { code: 'AccessDenied' },
    });
    expect(await look(bucket, s3.server.reader, false)).toContain('it can be read');
  });
});
