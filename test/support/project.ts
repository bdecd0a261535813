/** Throw-away project folders: `retl.yaml`, `mirrors/*.yaml` and whatever else a test puts there. */

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';

export interface TestProject {
  readonly folder: string;
  /** Writes one file, path relative to the folder; objects become YAML. */
  write(path: string, content: string | object): Promise<void>;
  remove(): Promise<void>;
}

/** `files`: path relative to the project to text, or to an object that is written as YAML. */
export async function createTestProject(
  files: { readonly [path: string]: string | object } = {},
): Promise<TestProject> {
  const folder = await mkdtemp(join(tmpdir(), 'retl-project-'));
  const write = async (path: string, content: string | object): Promise<void> => {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, typeof content === 'string' ? content : stringify(content));
  };
  for (const [path, content] of Object.entries(files)) await write(path, content);
  return { folder, write, remove: () => rm(folder, { recursive: true, force: true }) };
}
