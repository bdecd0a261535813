/** `retl init`: writes a working project, and never over a file that is there. */

import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { SCHEMA_FOLDER, SKELETON } from '../skeleton.ts';

export function initCommand(): Command {
  return newCommand(
    {
      name: 'init',
      summary: 'write a first project into a folder',
      description:
        'Writes retl.yaml, mirrors/example.yaml, .env.example and .gitignore: a project that works as it stands, with ' +
        'comments on how to make it your own. A file that is there already is left as it is. Also puts the JSON Schemas ' +
        'for editors into .retl/schema.',
      examples: [
        ['retl init', 'into this folder'],
        ['retl init my-mirrors', 'into another one'],
      ],
    },
    init,
  ).argument('[folder]', 'where to write; made where it is missing');
}

const SCHEMAS = ['retl.schema.json', 'mirror.schema.json'];

async function init({ output, args, options }: Invocation): Promise<ExitCode> {
  const folder = resolve(args[0] ?? (typeof options.project === 'string' ? options.project : '.'));
  const written: string[] = [];
  const kept: string[] = [];
  try {
    for (const { path, content } of SKELETON)
      ((await writeNew(join(folder, path), content)) ? written : kept).push(path);
    await copySchemas(folder);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new Refusal(
      EXIT.failure,
      'cannot-write',
      `The folder cannot be written to (${code}).`,
      'Name another folder.',
    );
  }
  output.document({ folder, written, kept });
  for (const path of written) output.line(`${output.style('green', 'written')}  ${path}`);
  for (const path of kept) output.line(`${output.style('dim', 'kept')}     ${path} (was there already)`);
  if (written.length > 0) {
    output.line();
    output.line('Next: `retl dev` starts everything on this machine; then, in another terminal,');
    output.line('`retl check` and `retl run example`.');
  }
  return EXIT.ok;
}

/** False where the file is there already: never written over, also not when two do this at once. */
async function writeNew(path: string, content: string): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true });
  try {
    await writeFile(path, content, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** The schemas of this version: our own files, so that they follow every release. */
async function copySchemas(folder: string): Promise<void> {
  await mkdir(join(folder, SCHEMA_FOLDER), { recursive: true });
  for (const name of SCHEMAS) {
    const packaged = fileURLToPath(new URL(`../../../schema/${name}`, import.meta.url));
    await copyFile(packaged, join(folder, SCHEMA_FOLDER, name));
  }
}
