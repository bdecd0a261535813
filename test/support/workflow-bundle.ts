/** The workflows' bundle for workers in processes: made once for the sources as they are, and not by each worker anew. */

import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';

const PROJECT = resolve(import.meta.dirname, '..', '..');
/** All that may be bundled (test/architecture), and what says which SDK bundles it. */
const FOLDERS = ['src/domain', 'src/workflows', 'src/activities'];
const FILES = ['package-lock.json'];

let made: Promise<string> | null = null;

/** The path of a file that this project's worker takes as `RETL_WORKFLOW_BUNDLE`. */
export function workflowBundle(): Promise<string> {
  made ??= make();
  return made;
}

async function make(): Promise<string> {
  const path = join(tmpdir(), `retl-workflow-bundle-${await digest()}.js`);
  if (existsSync(path)) return path;
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(PROJECT, 'src/workflows/index.ts'),
    logger: new DefaultLogger('WARN'),
  });
  // Two test processes may make it at once: either is whole.
  const making = `${path}.${process.pid}`;
  await writeFile(making, code);
  await rename(making, path);
  return path;
}

async function digest(): Promise<string> {
  const hash = createHash('sha256').update(PROJECT);
  const inside = await Promise.all(
    FOLDERS.map(async (folder) =>
      (await readdir(join(PROJECT, folder), { recursive: true })).map((name) => join(folder, name)),
    ),
  );
  for (const file of [...FILES, ...inside.flat().filter((name) => name.endsWith('.ts'))].sort())
    hash.update(`\n${file}\n`).update(await readFile(join(PROJECT, file)));
  return hash.digest('hex').slice(0, 32);
}
