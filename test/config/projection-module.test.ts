import { execFile } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { digestOf } from '../../src/config/mapping-module.ts';
import { loadProjection } from '../../src/config/projection-module.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { MIRROR, PROJECT, problemsOf, settingsOf } from './support.ts';

const MODULE = `const rowType = { safeParse: (data) => ({ success: true, data }) };
export default { rowType, project: (row) => [{ identity: row, upsert: row, remove: row }] };
export const named = { rowType, project: () => [] };
export const number = 5;
`;
const BY_MODULE = `${MIRROR.slice(0, MIRROR.indexOf('members'))}mapping: { module: ./vip.mjs }\n${MIRROR.slice(MIRROR.indexOf('destination'))}`;

let project: TestProject;
beforeEach(async () => {
  project = await createTestProject({ 'mirrors/vip.mjs': MODULE });
});
afterEach(() => project.remove());

async function mapping() {
  const files = { 'retl.yaml': PROJECT, 'mirrors/vip.yaml': BY_MODULE, 'mirrors/vip.mjs': MODULE };
  const found = (await settingsOf(files)).mirrors[0]?.mapping;
  if (found?.kind !== 'module') throw new Error('no module was read');
  return found;
}

test('a mapping by module is known by its path in the project, its export and the hash of its content', async () => {
  expect(await mapping()).toEqual({
    kind: 'module',
    path: 'mirrors/vip.mjs',
    export: 'default',
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
  });
});

test('the function is loaded by its export', async () => {
  const settings = await mapping();
  const byDefault = await loadProjection(settings, project.folder);
  const named = await loadProjection({ ...settings, export: 'named' }, project.folder);
  expect(byDefault.project({ id: 1 })).toHaveLength(1);
  expect(named.project({ id: 1 })).toEqual([]);
});

test('a module that has changed since the revision is refused', async () => {
  const settings = await mapping();
  await project.write('mirrors/vip.mjs', `${MODULE}\n`);
  await expect(loadProjection(settings, project.folder)).rejects.toThrow('changed-since-the-revision');
});

test('a changed module is loaded anew under its new revision, in the same process', async () => {
  const before = await loadProjection(await mapping(), project.folder);
  await project.write(
    'mirrors/vip.mjs',
    MODULE.replace('[{ identity: row, upsert: row, remove: row }]', '[]'),
  );
  const digest = await digestOf(join(project.folder, 'mirrors/vip.mjs'));
  const after = await loadProjection({ ...(await mapping()), digest }, project.folder);
  expect([before.project({}).length, after.project({}).length]).toEqual([1, 0]);
});

test.each([
  ['no-such-export', 'gone'],
  ['not-a-projection', 'number'],
])('an export that does not fit is refused: %s', async (rule, name) => {
  await expect(loadProjection({ ...(await mapping()), export: name }, project.folder)).rejects.toThrow(rule);
});

test('leaks: what a module throws while it is loaded is not repeated', async () => {
  const text = "throw new Error('canary');";
  await project.write('mirrors/vip.mjs', text);
  const files = { 'retl.yaml': PROJECT, 'mirrors/vip.yaml': BY_MODULE, 'mirrors/vip.mjs': text };
  const settings = (await settingsOf(files)).mirrors[0]?.mapping;
  if (settings?.kind !== 'module') throw new Error('no module was read');
  const error = await loadProjection(settings, project.folder).catch((thrown: unknown) => thrown);
  expect(String(error)).toContain('cannot-be-loaded');
  expect(String(error)).not.toContain('canary');
});

test('a link that leads out of the project is refused', async () => {
  const outside = await createTestProject({ 'x.mjs': MODULE });
  const inside = await createTestProject({ 'retl.yaml': PROJECT, 'mirrors/vip.yaml': BY_MODULE });
  await symlink(join(outside.folder, 'x.mjs'), join(inside.folder, 'mirrors/vip.mjs'));
  const { loadProject } = await import('../../src/config/load.ts');
  const loaded = await loadProject(inside.folder, null, null);
  expect(loaded).toMatchObject({ kind: 'invalid', problems: [{ path: 'mapping.module' }] });
  await Promise.all([outside.remove(), inside.remove()]);
});

test('a module in TypeScript loads in a process with tsx, in either module system, and anew when it has changed', async () => {
  const text = MODULE.replace('(data)', '(data: unknown)').replace('(row)', '(row: object)');
  const source = pathToFileURL(join(import.meta.dirname, '../../src/config/'));
  for (const file of ['vip.ts', 'vip.mts']) {
    await project.write(`mirrors/${file}`, text);
    const program = `
      import { writeFile } from 'node:fs/promises';
      import { loadProjection } from '${source.href}projection-module.ts';
      import { digestOf } from '${source.href}mapping-module.ts';
      const file = '${project.folder}/mirrors/${file}';
      const members = async () => {
        const settings = { kind: 'module', path: 'mirrors/${file}', export: 'default', digest: await digestOf(file) };
        return (await loadProjection(settings, '${project.folder}')).project({}).length;
      };
      const before = await members();
      await writeFile(file, ${JSON.stringify(text.replace('[{ identity: row, upsert: row, remove: row }]', '[]'))});
      console.log(before, await members(), await members());`;
    await project.write('main.mjs', program);
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--import',
      import.meta.resolve('tsx'),
      join(project.folder, 'main.mjs'),
    ]);
    expect(stdout.trim()).toBe('1 0 0');
  }
});

test('the key of a mirror by module is checked like any other', async () => {
  expect(
    await problemsOf({
      'retl.yaml': PROJECT,
      'mirrors/vip.yaml': BY_MODULE.replace('key: [id]', 'key: []'),
      'mirrors/vip.mjs': MODULE,
    }),
  ).toHaveLength(1);
});
