import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadProjection } from '../../src/config/projection-module.ts';
import { settingsText } from '../../src/config/settings-text.ts';
import { ROOT } from '../architecture/sources.ts';
import { blocks, page } from '../docs/pages.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { type Files, MIRROR, PROJECT, problemsOf, settingsOf } from './support.ts';

const MAPPING = `mapping: {
    rowType: { safeParse: (data) => ({ success: true, data }) },
    project: (row) => [{ identity: { id: row.id }, upsert: { id: row.id }, remove: { id: row.id } }],
  },`;
const MODULE = `export default {
  source: { connection: 'shop', query: 'select id from customers', key: 'id' },
  ${MAPPING}
  destination: {
    connection: 'crm',
    upsert: { method: 'POST', path: '/members' },
    remove: { method: 'DELETE', path: '/members' },
  },
  batch: { rows: 7, bytes: undefined },
  schedule: { every: '1h' },
  tags: ['eu'],
};
`;
const BY_RULES = MODULE.replace(MAPPING, "members: { identity: { id: 'id' } },");

function files(module: string, more: Files = {}): Files {
  return { 'retl.yaml': PROJECT, 'mirrors/vip.mjs': module, ...more };
}

let project: TestProject;
beforeEach(async () => {
  project = await createTestProject();
});
afterEach(() => project.remove());

test('a module is a mirror like any other: its keys, their defaults and the project’s, its schedule and its tags', async () => {
  const found = await settingsOf(
    files(BY_RULES, { 'retl.yaml': `${PROJECT}defaults: { batch: { in_flight: 2 } }\n` }),
  );
  expect(found.mirrors).toMatchObject([
    {
      mirror: 'vip',
      mapping: { kind: 'rules', members: [{ identity: { id: { column: 'id' } } }] },
      batch: { rows: 7, bytes: 1_000_000, inFlight: 2 },
    },
  ]);
  expect(found.tags).toEqual({ vip: ['eu'] });
  expect(found.schedules).toMatchObject({ vip: { times: { everyMs: 3_600_000 } } });
});

test('a mapping that stands in the module is known by the hash of the file: an edit is a new revision', async () => {
  const revision = async (text: string) => (await settingsOf(files(text))).mirrors.map(settingsText);
  const before = await revision(MODULE);
  expect(before[0]).toContain('"path":"mirrors/vip.mjs"');
  expect(await revision(MODULE.replace('upsert: { id', 'upsert: { x: 1, id'))).not.toEqual(before);
  // By rules the values are the revision, and a comment is none of them.
  expect(await revision(`// why\n${BY_RULES}`)).toEqual(await revision(BY_RULES));
});

test('the mapping of a module is what maps its rows', async () => {
  const mapping = (await settingsOf(files(MODULE))).mirrors[0]?.mapping;
  if (mapping?.kind !== 'module') throw new Error('no module was read');
  await project.write('mirrors/vip.mjs', MODULE);
  const projection = await loadProjection(mapping, project.folder);
  expect(projection.project({ id: 'a' })).toEqual([
    { identity: { id: 'a' }, upsert: { id: 'a' }, remove: { id: 'a' } },
  ]);
  await project.write('mirrors/vip.mjs', `${MODULE}\n`);
  await expect(loadProjection(mapping, project.folder)).rejects.toThrow('changed-since-the-revision');
});

/** A module, and what is told of it: `file path: message`. */
const CASES: readonly (readonly [string, string, string])[] = [
  ['throws', "throw new Error('canary');", 'mirrors/vip.mjs: The module cannot be loaded.'],
  ['is no JavaScript', 'export default {', 'mirrors/vip.mjs: The module cannot be loaded.'],
  ['imports what is not there', "import 'no-such-package-canary';", 'Something that the module imports'],
  ['exports nothing', 'export const mirror = {};', 'The module has no default export.'],
  ['exports a text', "export default 'canary';", 'The default export is no mirror.'],
  ['exports a function', 'export default () => ({});', 'The default export is no mirror.'],
  [
    'has an unknown key',
    MODULE.replace('tags:', 'tagz:'),
    'mirrors/vip.mjs tagz: The key `tagz` is unknown. Did you mean `tags`?',
  ],
  [
    'has a wrong value',
    MODULE.replace('rows: 7', 'rows: 0'),
    'mirrors/vip.mjs batch.rows: This must be at least 1.',
  ],
  ['lacks its source', MODULE.replace('source:', 'sauce:'), 'mirrors/vip.mjs source: `source` is missing.'],
  ['lacks a mapping', MODULE.replace(MAPPING, ''), 'A mirror needs either `members` or `mapping`'],
  [
    'has half a projection',
    MODULE.replace('rowType', 'row'),
    'mirrors/vip.mjs mapping: This is no MirrorProjection.',
  ],
  ['holds a date', MODULE.replace("['eu']", 'new Date()'), 'mirrors/vip.mjs tags: This is no plain value.'],
  [
    'holds a function',
    MODULE.replace("'/members'", '() => 1'),
    'destination.upsert.path: This is no plain value.',
  ],
  ['holds a number that is none', MODULE.replace('7', 'NaN'), 'batch.rows: This is no plain value.'],
  [
    'holds itself',
    `${MODULE.replace('export default', 'const m =')}m.batch = m; export default m;`,
    'batch: This is no plain value.',
  ],
  [
    'refers to a secret',
    MODULE.replace('/members', `\${env:CRM_TOKEN}`),
    'Secret references are not resolved in a mirror.',
  ],
  ['names a connection that is not there', MODULE.replace("'shop'", "'shpo'"), 'Did you mean `shop`?'],
];

test.each(CASES)(
  'a module that %s is told with file, path and remedy, and without its words',
  async (_name, text, told) => {
    const problems = (await problemsOf(files(text))).join('\n');
    expect(problems).toContain(told);
    expect(problems).not.toContain('canary');
  },
);

test('a module and a YAML file of one name are refused; a mapping, helpers and tests are no mirrors', async () => {
  expect(await problemsOf(files(MODULE, { 'mirrors/vip.yaml': MIRROR }))).toEqual([
    'mirrors/vip.mjs: `mirrors/vip.yaml` is a mirror of the same name. Keep one of the two; a module of helpers goes into another folder, or begins with `_`.',
  ]);
  const [above, below] = [MIRROR.indexOf('members:'), MIRROR.indexOf('destination:')];
  const mapped = `${MIRROR.slice(0, above)}mapping: { module: ./map.mjs }\n${MIRROR.slice(below)}`;
  const beside = {
    'mirrors/a.yaml': mapped,
    'mirrors/map.mjs': 'export default {};',
    'mirrors/_helpers.mjs': 'throw 1;',
    'mirrors/vip.test.ts': 'throw 1;',
    'mirrors/types.d.ts': '',
  };
  expect((await settingsOf(files(MODULE, beside))).mirrors.map(({ mirror }) => mirror)).toEqual(['a', 'vip']);
  expect(await problemsOf(files(MODULE, { 'mirrors/Vip 2.ts': '' }))).toEqual([
    expect.stringContaining('The file’s name is not a valid name of a mirror.'),
  ]);
});

test('the example of docs/configuration.md is a mirror, read and mapped by a process with tsx', async () => {
  const [example = ''] = blocks(page('docs/configuration.md'), 'ts');
  await project.write('retl.yaml', PROJECT);
  await project.write('mirrors/vip.ts', example);
  // As installed beside retl.yaml.
  const api = pathToFileURL(join(ROOT, 'src/config/define-mirror.ts')).href;
  await project.write(
    'node_modules/retl-mirror/package.json',
    JSON.stringify({ type: 'module', exports: './index.ts' }),
  );
  await project.write('node_modules/retl-mirror/index.ts', `export { defineMirror } from '${api}';\n`);
  await project.write(
    'node_modules/zod/package.json',
    JSON.stringify({ type: 'module', exports: './index.js' }),
  );
  const zod = pathToFileURL(join(ROOT, 'node_modules/zod/index.js')).href;
  await project.write('node_modules/zod/index.js', `export * from '${zod}';\n`);
  const source = pathToFileURL(join(ROOT, 'src/config/')).href;
  await project.write(
    'main.ts',
    `import { loadMirror } from '${source}load.ts';
    import { loadProjection } from '${source}projection-module.ts';
    const load = async () => {
      const loaded = await loadMirror('${project.folder}', 'vip', null, null);
      if (loaded.kind === 'invalid') throw new Error(JSON.stringify(loaded.problems));
      const [{ mapping, safety }] = loaded.settings.mirrors as any;
      const { project } = await loadProjection(mapping, '${project.folder}');
      console.log(safety.maxRemovalShare, project({ id: '1', email: 'a@example.com', plan: 'vip' }).length);
    };
    load();`,
  );
  const tsx = import.meta.resolve('tsx');
  const inside = await promisify(execFile)(process.execPath, [
    '--import',
    tsx,
    join(project.folder, 'main.ts'),
  ]);
  expect(inside.stdout.trim()).toBe('0.1 1');
});
