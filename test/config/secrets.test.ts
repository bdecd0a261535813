import fc from 'fast-check';
import { expect, test } from 'vitest';
import { resolveReferences, secretsOf } from '../../src/config/secrets.ts';
import { RetlError } from '../../src/domain/errors.ts';
import { createTestProject } from '../support/project.ts';
import { MIRROR, PROJECT, problemsOf, projectWith, SECRETS, settingsOf } from './support.ts';

const ref = (text: string) => `\${${text}}`;

test('references are resolved at any depth, alone and inside a text, and everything else is left as it is', () => {
  const options = {
    url: ref('env:A'),
    auth: { header: `Bearer ${ref('env:B')}!`, list: [ref('env:A'), 1, null, true] },
  };
  expect(resolveReferences(options, { A: 'one', B: 'two' }, () => '')).toEqual({
    url: 'one',
    auth: { header: 'Bearer two!', list: ['one', 1, null, true] },
  });
});

test('a secret is taken as it is: nothing in it is a reference again', () => {
  expect(resolveReferences({ a: ref('env:A') }, { A: ref('env:B'), B: 'x' }, () => '')).toEqual({
    a: ref('env:B'),
  });
});

test('a secret file loses one newline at its end, and nothing else', async () => {
  const project = await createTestProject({
    'unix.txt': ' a\n',
    'dos.txt': 'b\r\n',
    'two.txt': 'c\n\n',
    'none.txt': 'd',
  });
  const { readFile } = secretsOf(project.folder, {});
  const options = {
    a: ref('file:unix.txt'),
    b: ref('file:./dos.txt'),
    c: ref('file:two.txt'),
    d: ref(`file:${project.folder}/none.txt`),
  };
  expect(resolveReferences(options, {}, readFile)).toEqual({ a: ' a', b: 'b', c: 'c\n', d: 'd' });
  await project.remove();
});

test.each([
  ['env:GONE', {}],
  ['env:EMPTY', { EMPTY: '' }],
  ['file:/nowhere/at/all', {}],
])('%s, which leads nowhere, is named', (reference, env) => {
  const resolve = () => resolveReferences({ a: ref(reference) }, env, secretsOf('/', env).readFile);
  expect(resolve).toThrow(RetlError);
  expect(resolve).toThrow(`config.secret`);
  expect(resolve).toThrow('path=a');
  expect(resolve).toThrow(ref(reference));
});

test.each([
  [
    'a password',
    `url: ${ref('env:SHOP_URL')}`,
    'host: db\n    database: shop\n    user: u\n    password: canary-shop',
  ],
  ['a URL with a password', ref('env:SHOP_URL'), 'postgres://u:canary-shop@db/shop'],
  ['a URL with a password as a parameter', ref('env:SHOP_URL'), 'postgres://u@db/shop?password=canary-shop'],
  ['a bearer token', ref('env:CRM_TOKEN'), 'canary-token'],
  [
    'a client secret',
    `bearer: ${ref('env:CRM_TOKEN')}`,
    'oauth2: { token_url: "https://x.example/t", client_id: me, client_secret: canary-token }',
  ],
  [
    'a header that authorises',
    'auth:',
    'headers: { Authorization: canary-token, X-Api-Key: canary-token }\n    auth:',
  ],
])('leaks: %s in plain text is refused, and not repeated', async (_name, old, replacement) => {
  const problems = await problemsOf(projectWith(old, replacement));
  expect(problems.join('\n')).toContain('A secret stands here in plain text.');
  expect(problems.join('\n')).not.toContain('canary');
});

test('a URL may hold its password as a reference, or have none', async () => {
  await settingsOf(projectWith(ref('env:SHOP_URL'), `postgres://u:${ref('env:CRM_TOKEN')}@db/shop`));
  await settingsOf(projectWith(ref('env:SHOP_URL'), 'postgres://u@db/shop'));
});

test('a token’s URL is no token', async () => {
  const auth = `oauth2: { token_url: "https://x.example/t", client_id: me, client_secret: "${ref('env:CRM_TOKEN')}" }`;
  await settingsOf(projectWith(`bearer: ${ref('env:CRM_TOKEN')}`, auth));
});

test('a connection that no mirror uses may have its secrets elsewhere', async () => {
  const unused = `  other:\n    type: http\n    base_url: https://x.example\n    auth:\n      bearer: ${ref('env:ELSEWHERE')}\n`;
  await settingsOf({ 'retl.yaml': PROJECT + unused, 'mirrors/vip.yaml': MIRROR });
});

test('the owner’s URL is looked up by `retl migrate` alone', async () => {
  await settingsOf(projectWith('connections:', `  owner_url: ${ref('env:ELSEWHERE')}\nconnections:`));
});

test('leaks: whatever a secret holds, no message of the configuration repeats it', async () => {
  const canary = fc.stringMatching(/^[a-z0-9:/@.?=%]{12,40}$/);
  await fc.assert(
    fc.asyncProperty(canary, canary, async (url, token) => {
      const env = { ...SECRETS, SHOP_URL: `${url}zq`, CRM_TOKEN: `${token}zq\n` };
      const problems = await problemsOf({ 'retl.yaml': PROJECT, 'mirrors/vip.yaml': MIRROR }, { env });
      const told = problems.join('\n');
      expect(told).not.toContain(url);
      expect(told).not.toContain(token);
    }),
    { numRuns: 40 },
  );
});
