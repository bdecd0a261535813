/**
 * OpenSearch as it is published for Java: the jars of one node at pinned versions, each held to its SHA-256, from Maven
 * Central or from the mirror of it that `RETL_MAVEN_URL` names. They are kept in the cache folder between runs.
 */

import { createHash, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

const CENTRAL = 'https://repo1.maven.org/maven2';
const PINNED = join(import.meta.dirname, 'jars.txt');
const DOWNLOADS_AT_ONCE = 8;
const DOWNLOAD_WITHIN_MS = 120_000;
const TRIES = 3;

interface Jar {
  readonly sha256: string;
  /** Below the repository's address. */
  readonly path: string;
}

/** @returns the folder with all jars. @throws Error where one cannot be had, or is not what was pinned */
export async function openSearchJars(cache: string, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const pinned = await readFile(PINNED, 'utf8');
  // The pinned list names the folder: another list is another set of jars.
  const folder = join(cache, `opensearch-${sha256(Buffer.from(pinned)).slice(0, 12)}`);
  await mkdir(folder, { recursive: true });
  const missing = jarsIn(pinned).filter(({ path }) => !existsSync(join(folder, basename(path))));
  const base = (env.RETL_MAVEN_URL || CENTRAL).replace(/\/+$/, '');
  const workers = Array.from({ length: DOWNLOADS_AT_ONCE }, async () => {
    for (let jar = missing.pop(); jar !== undefined; jar = missing.pop())
      await keep(folder, jar.path, await download(base, jar));
  });
  await Promise.all(workers);
  return folder;
}

function jarsIn(pinned: string): Jar[] {
  return pinned
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [hash = '', path = ''] = line.split(/\s+/);
      return { sha256: hash, path };
    });
}

async function download(base: string, { path, sha256: expected }: Jar): Promise<Buffer> {
  for (let tried = 1; ; tried += 1) {
    const bytes = await fetched(`${base}/${path}`).catch((error: unknown) => {
      if (tried === TRIES) throw new Error(`${basename(path)} cannot be had from ${base}`, { cause: error });
      return null;
    });
    if (bytes === null) continue;
    if (sha256(bytes) === expected) return bytes;
    throw new Error(`${basename(path)} from ${base} is not the file whose hash is pinned`);
  }
}

async function fetched(url: string): Promise<Buffer> {
  const reply = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_WITHIN_MS) });
  if (!reply.ok) throw new Error(`HTTP ${reply.status}`);
  return Buffer.from(await reply.arrayBuffer());
}

/** Whole or not at all, also where two processes do it at once. */
async function keep(folder: string, path: string, bytes: Buffer): Promise<void> {
  const unfinished = join(folder, `.${randomUUID()}`);
  await writeFile(unfinished, bytes);
  await rename(unfinished, join(folder, basename(path)));
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
