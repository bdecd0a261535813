/** `artifacts` of retl.yaml: every fault of every store is told when the file is read. */

import { expect, test } from 'vitest';
import { z } from 'zod';
import { artifactsInput } from '../../src/config/artifacts-schema.ts';
import { schemasAt } from '../../src/config/schema-walk.ts';
import { artifactOptions } from '../../src/indexing/artifacts/options.ts';
import { PROJECT, problemsOf, SECRETS, settingsOf } from './support.ts';

const written = (artifacts: string) => ({ 'retl.yaml': `${PROJECT}artifacts: ${artifacts}\n` });
const env = { ...SECRETS, KEY: 'canary-key', ENDPOINT: 'https://store.example.org' };

test('the journal keeps checkpoints where nothing is said', async () => {
  const { artifacts } = await settingsOf({ 'retl.yaml': PROJECT });
  expect(artifacts).toEqual({ current: { type: 'journal' }, former: [] });
});

test('a store keeps what is needed to enter it, by reference, and those before it', async () => {
  const keys = `access_key_id: "\${env:KEY}", secret_access_key: "\${env:KEY}", endpoint: "\${env:ENDPOINT}"`;
  const store = `{ type: s3, bucket: b, prefix: prod/, ${keys}, former: [{ type: files, folder: kept }] }`;
  const { artifacts } = await settingsOf(written(store), { env });
  expect(artifacts.current).toMatchObject({ type: 's3', access_key_id: `\${env:KEY}`, prefix: 'prod/' });
  expect(artifacts.former).toEqual([{ type: 'files', folder: 'kept' }]);
});

test.each([
  [
    '{ type: disk }',
    ['artifacts.type: This is none of the valid values. Expected one of: journal, files, s3.'],
  ],
  ['{ folder: x }', ['artifacts.type: `type` is missing']],
  ['{ type: files }', ['artifacts.folder: `folder` is missing. Expected: a folder that is there']],
  ['{ type: journal, folder: x }', ['artifacts.folder: The key `folder` is unknown']],
  [
    // Each fault at its own place, those of former stores as well, and all of them at once.
    `{ type: s3, bukket: canary, prefix: canary, endpoint: "http://canary.example.org", access_key_id: "\${env:KEY}", ca: canary, timeout_ms: 0,
      former: [{ type: files, foldr: canary }, { type: s3, bucket: b, endpoint: "ftp://canary", session_token: "\${env:KEY}" }] }`,
    [
      'artifacts.bucket: `bucket` is missing. Expected: the name of a bucket that is there',
      'artifacts.bukket: The key `bukket` is unknown. Did you mean `bucket`?',
      'artifacts.prefix: This must be empty or end with a slash',
      'artifacts.endpoint: This may be plain http on this machine only. Use https',
      'artifacts.secret_access_key: `secret_access_key` is missing. Give both or neither.',
      'artifacts.ca: This must be one or more certificates in PEM',
      'artifacts.timeout_ms: This must be at least 1. Expected: milliseconds for one request',
      'artifacts.former[0].folder: `folder` is missing',
      'artifacts.former[0].foldr: The key `foldr` is unknown. Did you mean `folder`?',
      'artifacts.former[1].endpoint: This must be an http or https URL',
      'artifacts.former[1].session_token: This stands without `access_key_id`',
    ],
  ],
])('%s is refused, at each place', async (artifacts, told) => {
  const problems = await problemsOf(written(artifacts), { env });
  for (const one of told) expect(problems.join('\n')).toContain(one);
  expect(problems).toHaveLength(told.length);
  expect(problems.join()).not.toContain('canary');
});

test('retl.yaml has the options of each store, and no other', () => {
  const shapes = (schema: z.ZodType) =>
    schemasAt(schema, []).flatMap((found) =>
      found instanceof z.ZodObject
        ? [
            Object.keys(found.shape)
              .filter((key) => key !== 'former')
              .sort(),
          ]
        : [],
    );
  expect(shapes(artifactsInput)).toHaveLength(3);
  expect(shapes(artifactsInput)).toEqual(shapes(artifactOptions));
});
