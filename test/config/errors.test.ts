import { expect, test } from 'vitest';
import { MIRROR, mirrorWith, PROJECT, problemsOf, projectWith } from './support.ts';

/** The adapters' own keys are theirs to change: which of them are listed is not this file's business. */
function withoutAdapterKeys(problems: readonly string[]): readonly string[] {
  return problems.map((line) => line.replace(/( (?:connections|destination)\..*Known keys: ).*$/, '$1…'));
}

/** What is replaced in the usual mirror, and by what; the snapshot holds what the user is told. */
const MIRROR_CASES: readonly (readonly [string, string, string])[] = [
  ['an unknown key at the top', 'baseline: new-empty', 'base_line: new-empty'],
  ['an unknown key that resembles none', 'baseline: new-empty', 'zzz: 1'],
  ['an unknown key in a field', 'normalize: email', 'normalise: email'],
  ['an unknown hash', 'hash: sha256', 'hash: SHA-256'],
  ['an unknown normalisation', 'normalize: email', 'normalize: [trim, e-mail]'],
  ['a hash as a number', 'hash: sha256', 'hash: sha256, as: number'],
  ['a field that is a number', 'plan: plan', 'plan: 5'],
  ['a field with neither column nor value', 'plan: plan', 'plan: {}'],
  ['an unknown condition', 'is: not_null', 'is: notnull'],
  ['a condition without a test', '{ column: email, is: not_null }', '{ column: email }'],
  ['no identity at all', '{ email_sha256: { column: email, normalize: email, hash: sha256 } }', '{}'],
  [
    'an identity that is a list',
    '{ email_sha256: { column: email, normalize: email, hash: sha256 } }',
    '[email]',
  ],
  ['an empty query', "select id, email, plan, updated_at from customers where plan = 'vip'", '"  "'],
  ['a key column twice', 'key: [id]', 'key: [id, id]'],
  ['no key column', 'key: [id]', 'key: []'],
  ['no key', '  key: [id]\n', ''],
  ['no source', MIRROR.slice(0, MIRROR.indexOf('members')), ''],
  ['neither members nor mapping', MIRROR.slice(MIRROR.indexOf('members'), MIRROR.indexOf('destination')), ''],
  ['both members and mapping', 'members:', 'mapping: { module: ./vip.ts }\nmembers:'],
  [
    'a module that is not there',
    MIRROR.slice(MIRROR.indexOf('members'), MIRROR.indexOf('destination')),
    'mapping: { module: ./gone.ts }\n',
  ],
  [
    'a module outside the project',
    MIRROR.slice(MIRROR.indexOf('members'), MIRROR.indexOf('destination')),
    'mapping: { module: ../../../etc/x.ts }\n',
  ],
  [
    'an absolute module',
    MIRROR.slice(MIRROR.indexOf('members'), MIRROR.indexOf('destination')),
    'mapping: { module: /etc/passwd.ts }\n',
  ],
  [
    'a module that is none',
    MIRROR.slice(MIRROR.indexOf('members'), MIRROR.indexOf('destination')),
    'mapping: { module: ./vip.yaml }\n',
  ],
  ['an unknown connection', 'connection: shop', 'connection: shpo'],
  ['a source that is no source', 'connection: shop', 'connection: crm'],
  ['an unknown destination type', 'type: http', 'type: https'],
  ['another type than the connection’s', 'type: http', 'type: postgres'],
  ['an unknown key of the destination', 'upsert: {', 'up_sert: {'],
  ['a method that the destination does not know', 'method: POST', 'method: PSOT'],
  ['no rows in a batch', 'rows: 1000', 'rows: 0'],
  ['half a row', 'rows: 1000', 'rows: 1.5'],
  ['rows as text', 'rows: 1000', 'rows: many'],
  ['a size without a unit that is known', 'bytes: 1MB', 'bytes: 1XB'],
  ['a size below what a request needs', 'bytes: 1MB', 'bytes: 10B'],
  ['a negative size', 'bytes: 1MB', 'bytes: -5'],
  ['a size without bounds', 'bytes: 1MB', 'bytes: 999999999999999GB'],
  ['more than everything', 'max_removals: 20%', 'max_removals: 120%'],
  ['a share as a fraction', 'max_removals: 20%', 'max_removals: 0.2'],
  ['a limit without a limit', 'max_removals: 20%', 'max_removals: {}'],
  ['an unknown word for an empty snapshot', 'empty_snapshot: hold', 'empty_snapshot: yes'],
  ['an unknown baseline', 'baseline: new-empty', 'baseline: empty'],
  ['an unknown kind of baseline', 'baseline: new-empty', 'baseline: { kind: new, attested: me }'],
  [
    'a baseline that does not go with the strategy',
    'baseline: new-empty',
    'strategy: native-replace\nbaseline: tracked',
  ],
  ['an unknown word about rejections', 'baseline: new-empty', 'on_rejection: ignore'],
  ['a tolerance without a limit', 'baseline: new-empty', 'on_rejection: { tolerate: {} }'],
  ['a tolerance of more than everybody', 'baseline: new-empty', 'on_rejection: { tolerate: { max: 120% } }'],
  ['a tolerance of less than nobody', 'baseline: new-empty', 'on_rejection: { tolerate: { max: -1 } }'],
  [
    'a replacement that would go on after rejections',
    'baseline: new-empty',
    'strategy: native-replace\non_rejection: continue',
  ],
  [
    'a replacement that would tolerate rejections',
    'baseline: new-empty',
    'strategy: native-replace\non_rejection: { tolerate: { max: 1% } }',
  ],
  ['a refresh without a unit', 'baseline: new-empty', 'refresh_after: 30'],
  ['a tag that is no word', 'baseline: new-empty', 'tags: [nightly, "EU West"]'],
  ['a tag that is a number', 'baseline: new-empty', 'tags: [2024]'],
  ['a tag twice', 'baseline: new-empty', 'tags: [eu, nightly, eu]'],
  ['a duration without a unit', 'baseline: new-empty', 'resume_max_age: 24'],
  ['a duration of an unknown unit', 'baseline: new-empty', 'resume_max_age: 1 week'],
  [
    'a secret reference in a mirror',
    'path: /audiences/42/members }\n  remove',
    'path: "/a/$' + '{env:CRM_TOKEN}" }\n  remove',
  ],
  ['a list for the whole file', MIRROR, '- a\n- b\n'],
];

test.each(MIRROR_CASES)('mirror: %s', async (_name, old, replacement) => {
  const problems = await problemsOf(mirrorWith(old, replacement));
  expect(problems).not.toEqual([]);
  expect(withoutAdapterKeys(problems)).toMatchSnapshot();
});

const PROJECT_CASES: readonly (readonly [string, string, string])[] = [
  ['no journal', PROJECT.slice(0, PROJECT.indexOf('connections')), ''],
  ['an unknown key', 'journal:', 'temporel: {}\njournal:'],
  ['an unknown key of the journal', '  url: $' + '{env:RETL', '  uri: x\n  url: $' + '{env:RETL'],
  ['an address with a scheme', 'journal:', 'temporal: { address: "http://localhost:7233" }\njournal:'],
  ['an unknown type', 'type: postgres', 'type: postgress'],
  ['no type', '    type: http\n', ''],
  ['a connection that is text', '  shop:\n', '  other: x\n  shop:\n'],
  [
    'a connection without a valid name',
    '  shop:\n',
    '  9x: { type: http, base_url: "https://x.example" }\n  shop:\n',
  ],
  ['an unknown key of a connection', 'base_url:', 'baseurl:'],
  ['a variable that is not set', 'env:SHOP_URL', 'env:SHOP_URI'],
  ['a file that is not there', 'env:SHOP_URL', 'file:/run/secrets/shop'],
  ['a mistyped reference', 'env:SHOP_URL', 'ENV:SHOP_URL'],
  ['a reference that does not end', '{env:SHOP_URL}', '{env:SHOP_URL'],
  ['a reference without a name', 'env:SHOP_URL', 'env:'],
  ['a name with a default, as shells have it', 'env:SHOP_URL', 'env:SHOP_URL:-x'],
  ['what a reference gives is no URL of the system', 'env:SHOP_URL', 'env:CRM_TOKEN'],
];

test.each(PROJECT_CASES)('retl.yaml: %s', async (_name, old, replacement) => {
  const problems = await problemsOf(projectWith(old, replacement));
  expect(problems).not.toEqual([]);
  expect(withoutAdapterKeys(problems)).toMatchSnapshot();
});

test('files: names that are no names of mirrors, and endings that are not .yaml', async () => {
  const files = {
    'mirrors/Vip.yaml': MIRROR,
    'mirrors/-a.yaml': MIRROR,
    'mirrors/b.yml': MIRROR,
    'mirrors/c d.yaml': MIRROR,
  };
  expect(await problemsOf({ 'retl.yaml': PROJECT, ...files })).toMatchSnapshot();
});

test('files: no retl.yaml', async () => {
  expect(await problemsOf({ 'mirrors/vip.yaml': MIRROR })).toMatchSnapshot();
});

test('every error of every file is told at once, in the order of the files', async () => {
  const problems = await problemsOf({
    'retl.yaml': PROJECT.replace('type: postgres', 'type: mysql'),
    'mirrors/a.yaml': MIRROR.replace('rows: 1000', 'rows: 0').replace('is: not_null', 'is: maybe'),
    'mirrors/b.yaml': 'a: 1\na: 2\n',
  });
  expect(problems.map((line) => line.split(' ')[0]?.replace(/:$/, ''))).toEqual([
    'mirrors/a.yaml:8:36',
    'mirrors/a.yaml:15:17',
    'mirrors/b.yaml:2:1',
    'retl.yaml:5:11',
  ]);
});

test('without the adapters, everything but their own settings is still judged', async () => {
  const files = mirrorWith('rows: 1000', 'rows: 0');
  expect(await problemsOf(files, { types: null })).toHaveLength(1);
  expect(await problemsOf(mirrorWith('method: POST', 'method: PSOT'), { types: null })).toEqual([]);
});
