/** Every section of both files refuses a key that it does not know, and names the nearest one that it does. */

import { expect, test } from 'vitest';
import { expectValid, expectValidHere, loadMirror } from '../../src/config/load.ts';
import { createTestProject } from '../support/project.ts';
import { MIRROR, PROJECT, problemsOf } from './support.ts';
import { SYSTEMS } from './systems.ts';

const BARE = MIRROR.slice(0, MIRROR.indexOf('baseline:'));

function escaped(path: string): string {
  return path.replaceAll(/[.[\]]/g, '\\$&');
}

/** A line of a mirror with a slip, where it is, and what was meant. */
const MIRROR_SLIPS: readonly (readonly [string, string, string])[] = [
  ['strategi: snapshot-diff', 'strategi', 'strategy'],
  ['resume_max: 1h', 'resume_max', 'resume_max_age'],
  ['tag: eu', 'tag', 'tags'],
  ['baseline: { kinds: new-empty }', 'baseline.kinds', 'kind'],
  ['baseline: { kind: new-empty, attest: x }', 'baseline.attest', 'attested'],
  ['batch: { row: 1 }', 'batch.row', 'rows'],
  ['batch: { byte: 1MB }', 'batch.byte', 'bytes'],
  ['batch: { inflight: 1 }', 'batch.inflight', 'in_flight'],
  ['safety: { maxRemovals: 1 }', 'safety.maxRemovals', 'max_removals'],
  ['safety: { max_removals: { shares: 1% } }', 'safety.max_removals.shares', 'share'],
  ['safety: { empty-snapshot: hold }', 'safety.empty-snapshot', 'empty_snapshot'],
  ['safety: { approval_dealine: 1h }', 'safety.approval_dealine', 'approval_deadline'],
  ['schedule: { evry: 1h }', 'schedule.evry', 'every'],
  ['schedule: { every: 1h, jiter: 1s }', 'schedule.jiter', 'jitter'],
  ['schedule: { every: 1h, catchup: 1h }', 'schedule.catchup', 'catch_up'],
  ['schedule: { cron: "@daily", timezone: UTC }', 'schedule.timezone', 'time_zone'],
  ['schedule: { every: 1h, pause_on_fail: true }', 'schedule.pause_on_fail', 'pause_on_failure'],
];

test.each(MIRROR_SLIPS)('mirror: %s', async (line, path, meant) => {
  const problems = await problemsOf({ 'retl.yaml': PROJECT, 'mirrors/vip.yaml': `${BARE}${line}\n` });
  expect(problems).toContainEqual(
    expect.stringMatching(
      new RegExp(`^mirrors/vip\\.yaml:\\d+:\\d+ ${escaped(path)}: .*Did you mean \`${meant}\`\\?`),
    ),
  );
});

const PROJECT_SLIPS: readonly (readonly [string, string, string])[] = [
  ['temporl: {}', 'temporl', 'temporal'],
  ['default: {}', 'default', 'defaults'],
  ['environment: {}', 'environment', 'environments'],
  ['temporal: { adress: "a:1" }', 'temporal.adress', 'address'],
  ['temporal: { taskQueue: a }', 'temporal.taskQueue', 'task_queue'],
  ['defaults: { saftey: {} }', 'defaults.saftey', 'safety'],
  ['defaults: { batch: { in_fligth: 2 } }', 'defaults.batch.in_fligth', 'in_flight'],
  ['defaults: { schedule: { overlaps: skip } }', 'defaults.schedule.overlaps', 'overlap'],
  ['environments: { a: { connection: {} } }', 'environments.a.connection', 'connections'],
  ['environments: { a: { journal: { urls: x } } }', 'environments.a.journal.urls', 'url'],
  ['environments: { a: { temporal: { name_space: x } } }', 'environments.a.temporal.name_space', 'namespace'],
  ['environments: { a: { defaults: { tag: x } } }', 'environments.a.defaults.tag', 'tags'],
];

test.each(PROJECT_SLIPS)('retl.yaml: %s', async (line, path, meant) => {
  const problems = await problemsOf({ 'retl.yaml': `${PROJECT}${line}\n`, 'mirrors/vip.yaml': MIRROR });
  expect(problems).toEqual([
    expect.stringMatching(
      new RegExp(`^retl\\.yaml:\\d+:\\d+ ${escaped(path)}: .*Did you mean \`${meant}\`\\?`),
    ),
  ]);
});

/** A reference where one is allowed, what stands in the file it names, and what is told. */
const REFERENCES: readonly (readonly [string, { readonly [path: string]: string }, readonly RegExp[]])[] = [
  [`\${file:token}`, { token: 'canary\n' }, []],
  [`\${file:token}`, { token: 'canary\r\n' }, []],
  [`\${file:token}`, {}, [/\$\{file:token\}: the file is missing, unreadable or empty\./]],
  [`\${file:token}`, { token: '' }, [/missing, unreadable or empty/]],
  [`\${file:token}`, { token: '\n' }, [/missing, unreadable or empty/]],
  [`\${file:}`, {}, [/A secret reference names no file\./]],
  [`\${env:\${env:CRM_TOKEN}}`, {}, [/is not of the form/]],
  [`\${file:\${env:CRM_TOKEN}}`, {}, [/is not of the form/]],
];

test.each(REFERENCES)('references: %s with %o', async (reference, files, told) => {
  const project = PROJECT.replace(`\${env:CRM_TOKEN}`, reference);
  const problems = await problemsOf({ 'retl.yaml': project, 'mirrors/vip.yaml': MIRROR }, { files });
  expect(problems).toEqual(told.map((words) => expect.stringMatching(words)));
  expect(problems.join('\n')).not.toContain('canary');
});

test.each([
  ['query', "plan = 'vip'", `plan = '\${env:SHOP_URL}'`],
  ['a field', 'plan: plan', `plan: { value: "\${file:x}" }`],
  [
    'a constant of a request',
    'path: /audiences/42/members }\n  remove',
    `path: "/\${env:CRM_TOKEN}" }\n  remove`,
  ],
  ['a tag', 'baseline: new-empty', `tags: ["\${env:CRM_TOKEN}"]`],
])('references: none is resolved in a mirror: %s', async (_where, old, replacement) => {
  expect(MIRROR).toContain(old);
  const problems = await problemsOf({
    'retl.yaml': PROJECT,
    'mirrors/vip.yaml': MIRROR.replace(old, replacement),
  });
  expect(problems.join('\n')).toContain('Secret references are not resolved in a mirror.');
});

test('leaks: where a worker says that a file is wrong, it names the place and no word of the file', async () => {
  const slips = 'canary_key: 1\nbatch: { canary_key: 1 }\nsafety: { empty_snapshot: canary-value }\n';
  const project = await createTestProject({ 'retl.yaml': PROJECT, 'mirrors/vip.yaml': `${BARE}${slips}` });
  try {
    const loaded = await loadMirror(project.folder, 'vip', SYSTEMS, null, null);
    const error = await Promise.resolve()
      .then(() => expectValid(loaded))
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'config.invalid', details: { count: 3 } });
    expect(String(error)).toMatch(
      /mirrors\/vip\.yaml:\d+:\d+ batch,.*mirrors\/vip\.yaml:\d+:\d+ safety\.empty_snapshot/,
    );
    expect(String(error)).not.toContain('canary');
    expect(() => expectValidHere(loaded)).toThrow(/canary-value.*hold/);
  } finally {
    await project.remove();
  }
});
