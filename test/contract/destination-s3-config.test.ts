/** Settings of the object store: what is refused, with the place, and what stands for what. */

import { expect, test } from 'vitest';
import { s3Destination } from '../../src/destinations/s3/index.ts';

const KEYS = { access_key_id: 'id', secret_access_key: 'key' };

const faultsOf = (schema: 'connection' | 'options', input: object): readonly string[] => {
  const { connectionSchema, optionsSchema } = s3Destination;
  const { error } = (schema === 'connection' ? connectionSchema : optionsSchema).safeParse(input);
  return (error?.issues ?? []).map(({ path }) => path.join('.'));
};

test.each([
  [{}, []],
  [{ endpoint: 'http://127.0.0.1:9000', ...KEYS }, []],
  [{ endpoint: 'http://store.example', allow_plain_http: true }, []],
  [{ endpoint: 'http://store.example' }, ['endpoint']],
  [{ endpoint: 'https://user:word@store.example' }, ['endpoint']],
  [{ endpoint: 'store.example' }, ['endpoint']],
  [{ access_key_id: 'id' }, ['secret_access_key']],
  [{ secret_access_key: 'key' }, ['access_key_id']],
  [{ session_token: 'token' }, ['session_token']],
  [{ tls: { ca: 'no certificate' } }, ['tls.ca']],
  [{ bucket: 'mine' }, ['']],
])('connection %j', (input, faults) => {
  expect(faultsOf('connection', input)).toEqual(faults);
});

test.each([
  [{ bucket: 'my.bucket-1', prefix: 'a/b c/ü' }, []],
  [{ bucket: 'My_Bucket' }, ['bucket']],
  [{ bucket: 'mine', prefix: '/a' }, ['prefix']],
  [{ bucket: 'mine', prefix: 'a//b' }, ['prefix']],
  [{ bucket: 'mine', prefix: 'a/../b' }, ['prefix']],
  [{ bucket: 'mine', prefix: 'ü'.repeat(400) }, ['prefix']],
  [{ bucket: 'mine', keep_superseded: -1 }, ['keep_superseded']],
])('options %j', (input, faults) => {
  expect(faultsOf('options', input)).toEqual(faults);
});

test('AWS is one place whatever its host is called, and its partitions are two', () => {
  const keyOf = (connection: object) =>
    s3Destination.targetKey(
      s3Destination.connectionSchema.parse(connection),
      s3Destination.optionsSchema.parse({ bucket: 'mine' }),
    );
  const aws = keyOf({});
  expect(keyOf({ region: 'eu-west-1' })).toBe(aws);
  expect(keyOf({ endpoint: 'https://s3.eu-west-1.amazonaws.com' })).toBe(aws);
  expect(keyOf({ region: 'cn-north-1' })).not.toBe(aws);
  expect(keyOf({ endpoint: 'https://s3.cn-north-1.amazonaws.com.cn' })).toBe(keyOf({ region: 'cn-north-1' }));
  expect(keyOf({ endpoint: 'https://amazonaws.com.example' })).not.toBe(aws);
});
