import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Project } from '../../src/cli/environment.ts';
import { InvalidProject } from '../../src/cli/failures.ts';
import { requiredMirrors, selectMirrors } from '../../src/cli/selection.ts';
import { secretsOf } from '../../src/config/secrets.ts';
import { RetlError } from '../../src/domain/errors.ts';
import { MIRROR, PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';

let folder: TestProject;
let project: Project;
beforeAll(async () => {
  folder = await createTestProject({
    'retl.yaml': PROJECT,
    'mirrors/vip-north.yaml': `${MIRROR}tags: [nightly, vip]\n`,
    'mirrors/vip-south.yaml': `${MIRROR}tags: vip\n`,
    'mirrors/churn.yaml': MIRROR,
  });
  project = {
    dir: folder.folder,
    secrets: secretsOf(folder.folder),
    environment: null,
    envFiles: [],
    fromFiles: new Set<string>(),
  };
});
afterAll(() => folder.remove());

const select = (args: readonly string[], tag?: readonly string[], also?: readonly string[]) =>
  selectMirrors({ project, args, options: tag === undefined ? {} : { tag } }, also);

test('names stay in the order named, patterns give theirs in order, and none comes twice', async () => {
  expect(await select(['churn', 'vip-*', 'vip-north'])).toEqual({
    mirrors: ['churn', 'vip-north', 'vip-south'],
    isBroad: true,
  });
  expect(await select(['vip-south', 'churn'])).toEqual({ mirrors: ['vip-south', 'churn'], isBroad: false });
});

test('a tag stands for the mirrors that have it, beside those that are named', async () => {
  expect(await select(['churn'], ['nightly'])).toEqual({ mirrors: ['churn', 'vip-north'], isBroad: true });
  expect((await select([], ['vip']))?.mirrors).toEqual(['vip-north', 'vip-south']);
});

test('nothing said is no selection; a command that must be told names what there is', async () => {
  expect(await select([])).toBeNull();
  await expect(requiredMirrors({ project, args: [], options: {} })).rejects.toMatchObject({
    remedy: expect.stringContaining('churn, vip-north, vip-south'),
  });
});

test('a pattern that stands for nothing names the mirrors there are', async () => {
  const refused = select(['vpi-*']);
  await expect(refused).rejects.toBeInstanceOf(RetlError);
  await expect(refused).rejects.toMatchObject({
    details: { pattern: 'vpi-*', known: ['churn', 'vip-north', 'vip-south'] },
  });
});

test('a mistyped name or tag is answered with the nearest there is', async () => {
  await expect(select(['vip-nroth'])).rejects.toMatchObject({ details: { 'did you mean': 'vip-north' } });
  await expect(select([], ['nigthly'])).rejects.toThrow('did you mean nightly?');
});

test('names that the journal alone knows can be chosen too', async () => {
  expect((await select(['*-old'], undefined, ['churn-old']))?.mirrors).toEqual(['churn-old']);
});

test('a folder without mirrors takes a name as it is: the worker’s configuration has the last word', async () => {
  const empty = await createTestProject({ 'retl.yaml': PROJECT });
  const elsewhere = {
    dir: empty.folder,
    secrets: secretsOf(empty.folder),
    environment: null,
    envFiles: [],
    fromFiles: new Set<string>(),
  };
  expect(await selectMirrors({ project: elsewhere, args: ['vip'], options: {} })).toMatchObject({
    mirrors: ['vip'],
  });
  await empty.remove();
});

test('tags of files with errors are not guessed at', async () => {
  const broken = await createTestProject({ 'retl.yaml': PROJECT, 'mirrors/a.yaml': 'nonsense: 1\n' });
  const there = {
    dir: broken.folder,
    secrets: secretsOf(broken.folder),
    environment: null,
    envFiles: [],
    fromFiles: new Set<string>(),
  };
  await expect(selectMirrors({ project: there, args: [], options: { tag: ['vip'] } })).rejects.toBeInstanceOf(
    InvalidProject,
  );
  await broken.remove();
});
