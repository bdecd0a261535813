/** Nothing is started on a configuration with an error (design.md section 10): `retl run` reads the mirror before it asks anybody. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { MIRROR, PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

/** Nobody listens there: a command that gets so far says so. */
const TEMPORAL = 'temporal: { address: "127.0.0.1:1" }\n';

let project: TestProject;
beforeAll(async () => {
  project = await createTestProject({
    'retl.yaml': `${PROJECT}${TEMPORAL}`,
    'mirrors/good.yaml': MIRROR,
    'mirrors/bad.yaml': MIRROR.replace('baseline: new-empty', 'baseline: new-empti\nsafty: {}'),
    'mirrors/worse.yaml': MIRROR.replace('path: /audiences/42/members }', 'paht: /members }'),
  });
});
afterAll(() => project.remove());

const run = (...args: readonly string[]) => retl(['run', ...args], { cwd: project.folder });

test('every problem of a mirror is told, and Temporal is not asked', async () => {
  const { code, stdout, stderr } = await run('bad');
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('mirrors/bad.yaml:');
  expect(stderr).toContain('`new-empti`');
  expect(stderr).toContain('Did you mean `safety`?');
  expect(stderr).toContain('nothing was started');
  expect(stderr).not.toContain('temporal.connect');
});

test('the destination’s own options are judged, and one bad mirror of several holds all of them', async () => {
  const { code, stdout } = await run('good', 'worse', '--json');
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({
    error: {
      code: 'config.invalid',
      problems: expect.arrayContaining([expect.objectContaining({ file: 'mirrors/worse.yaml' })]),
    },
  });
});

test('a machine without the mirror’s secrets, or without its file, starts it all the same', async () => {
  const good = await run('good');
  expect(good.stderr).toContain('temporal.connect');
  const elsewhere = await createTestProject({ 'retl.yaml': `${PROJECT}${TEMPORAL}` });
  try {
    const { stderr } = await retl(['run', 'afar'], { cwd: elsewhere.folder });
    expect(stderr).toContain('temporal.connect');
  } finally {
    await elsewhere.remove();
  }
});

test('--detach and --wait contradict each other', async () => {
  const { code, stderr } = await run('good', '--detach', '--wait');
  expect(code).toBe(2);
  expect(stderr).toContain('contradict');
});
