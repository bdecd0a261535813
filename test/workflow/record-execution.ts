/** With RETL_RECORD set, executions of a test's workflow become the histories that test/replay replays. */

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder } from '../../src/dev/cache-folder.ts';
import { findTemporalCli } from '../../src/dev/temporal-cli.ts';
import type { EagerServer } from './eager-server.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** @param name of the file below test/replay, without its ending */
export async function recordExecution(
  { address }: Pick<EagerServer, 'address'>,
  name: string,
  workflowId: string,
  runId: string,
): Promise<void> {
  if (process.env.RETL_RECORD === undefined) return;
  const cli = await findTemporalCli(cacheFolder(ROOT), () => undefined);
  const ids = ['--workflow-id', workflowId, '--run-id', runId, '--address', address];
  const { stdout } = await promisify(execFile)(cli, ['workflow', 'show', ...ids, '--output', 'json']);
  const scrubbed = (key: string, value: unknown) => {
    if (key === 'identity') return 'recorder';
    if (key === 'stackTrace') return '';
    return typeof value === 'string' ? value.replaceAll(`@${hostname()}`, '@recorder') : value;
  };
  const { events } = JSON.parse(stdout, scrubbed) as { readonly events: readonly unknown[] };
  const file = join(ROOT, 'test', 'replay', `${name}.json`);
  await writeFile(file, `{"events":[\n${events.map((event) => JSON.stringify(event)).join(',\n')}\n]}\n`);
}
