/** The public API is what README and docs say, and the built package gives it to a program that imports it. */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as api from '../../src/index.ts';
import { ROOT } from '../architecture/sources.ts';
import { blocks, page } from './pages.ts';

const run = promisify(execFile);
const TSC = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');

const VALUES = [
  'DESTINATIONS',
  'ERROR_CODES',
  'MAX_MEMBERS_PER_ROW',
  'MIRROR_WORKFLOW',
  'PROGRESS_QUERY',
  'RetlError',
  'SIGNALS',
  'TASK_QUEUE',
  'UPDATES',
  'answerParked',
  'applySchedule',
  'conformanceChecks',
  'connectClient',
  'defineMirror',
  'deleteSchedule',
  'describeHolder',
  'mirrorWorkflowId',
  'outcomeOf',
  'pauseSchedule',
  'readProgress',
  'readSchedule',
  'resumeSchedule',
  'runWorker',
  'scheduledMirrors',
  'signalMirror',
  'startMirror',
  'triggerSchedule',
  'watchRun',
];

/** What is replaced in the mirror of docs/configuration.md, by what, and what the compiler says. */
const WRONG_MIRRORS: readonly (readonly [string, string, string])[] = [
  ['safety:', 'savety:', 'savety'],
  ["empty_snapshot: 'hold'", "empty_snapshot: 'keep'", '\'"keep"\' is not assignable'],
  ['key: ', 'keys: ', 'keys'],
  ['  mapping:', "  members: { identity: { id: 'id' } },\n  mapping:", 'members'],
];

/** A package as it would be installed, and a program's folder beside it. */
let folder: string;
let program: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'retl-package-'));
  const installed = join(folder, 'package');
  program = join(folder, 'program');
  await mkdir(join(program, 'node_modules'), { recursive: true });
  await mkdir(installed);
  for (const name of ['package.json', 'node_modules']) await symlink(join(ROOT, name), join(installed, name));
  await symlink(installed, join(program, 'node_modules', 'retl-mirror'));
  for (const name of ['zod', 'vitest', '@types'])
    await symlink(join(ROOT, 'node_modules', name), join(program, 'node_modules', name));
  await run(process.execPath, [
    TSC,
    '-p',
    join(ROOT, 'tsconfig.build.json'),
    '--outDir',
    join(installed, 'dist'),
  ]);
}, 120_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

test('src/index.ts exports these values and no other', () => {
  expect(Object.keys(api).sort()).toEqual(VALUES);
});

test('the built package exports the same', async () => {
  await writeFile(
    join(program, 'list.mjs'),
    "import * as api from 'retl-mirror';\nconsole.log(JSON.stringify(Object.keys(api)));\n",
  );
  const { stdout } = await run(process.execPath, ['list.mjs'], { cwd: program });
  expect(JSON.parse(stdout)).toEqual(VALUES);
});

test('loading it starts nothing: no timer, no connection, no process', async () => {
  await writeFile(
    join(program, 'idle.mjs'),
    "await import('retl-mirror');\nsetImmediate(() => console.log(JSON.stringify(process.getActiveResourcesInfo())));\n",
  );
  const { stdout } = await run(process.execPath, ['idle.mjs'], { cwd: program, timeout: 60_000 });
  const active: readonly string[] = JSON.parse(stdout);
  expect(active.filter((name) => /Timeout|TCP|Process|Worker|MessagePort|UDP|FSEvent/.test(name))).toEqual(
    [],
  );
});

test('the examples of the docs are right by its types, and a wrong mapping is not', async () => {
  const [mapping = ''] = blocks(page('docs/mapping.md'), 'ts');
  const [kit = '', worker = ''] = blocks(page('docs/writing-an-adapter.md'), 'ts');
  const [mirror = ''] = blocks(page('docs/configuration.md'), 'ts');
  const files = {
    'mapping.ts': mapping,
    'mirror.ts': mirror,
    'kit.ts': kit,
    'worker.ts': worker,
    'harness.ts':
      "import type { ConformanceHarness } from 'retl-mirror';\nexport declare const harness: ConformanceHarness;\n",
    'my-destination.ts':
      "import type { DestinationAdapter } from 'retl-mirror';\nexport declare const myDestination: DestinationAdapter;\n",
    'package.json': '{"type":"module"}',
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        strict: true,
        module: 'NodeNext',
        target: 'ES2023',
        types: ['node'],
        allowImportingTsExtensions: true,
        noEmit: true,
        skipLibCheck: true,
      },
    }),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(program, name), text);
  await run(process.execPath, [TSC, '-p', '.'], { cwd: program });

  await writeFile(join(program, 'mapping.ts'), mapping.replace('remove: { id }', 'remove: id'));
  await expect(run(process.execPath, [TSC, '-p', '.'], { cwd: program })).rejects.toMatchObject({
    stdout: expect.stringContaining("Type 'string' is not assignable to type 'JsonObject'"),
  });
  await writeFile(join(program, 'mapping.ts'), mapping);

  for (const [written, wrong, told] of WRONG_MIRRORS) {
    expect(mirror).toContain(written);
    await writeFile(join(program, 'mirror.ts'), mirror.replace(written, wrong));
    await expect(run(process.execPath, [TSC, '-p', '.'], { cwd: program })).rejects.toMatchObject({
      stdout: expect.stringMatching(new RegExp(`^mirror\\.ts\\(.*${told}`, 's')),
    });
  }
});

test('a mirror in TypeScript is read by the built package in plain Node, as the command line reads it', async () => {
  const [mirror = ''] = blocks(page('docs/configuration.md'), 'ts');
  await mkdir(join(program, 'mirrors'));
  await writeFile(
    join(program, 'retl.yaml'),
    'journal: { url: x }\nconnections: { shop: { type: a }, crm: { type: b } }\n',
  );
  await writeFile(join(program, 'mirrors', 'vip.ts'), mirror);
  await writeFile(
    join(program, 'read.mjs'),
    `import { loadMirror } from '../package/dist/config/load.js';
    import { loadProjection } from '../package/dist/config/projection-module.js';
    const { settings } = await loadMirror('.', 'vip', null, null);
    const projection = await loadProjection(settings.mirrors[0].mapping, '.');
    console.log(projection.project({ id: '1', email: 'a@example.com', plan: 'vip' }).length);`,
  );
  const { stdout } = await run(process.execPath, ['read.mjs'], { cwd: program });
  expect(stdout.trim()).toBe('1');
});
