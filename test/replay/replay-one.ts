/** Replays one recorded history that a test names by its file. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ReplayResult, Worker, type WorkflowBundle } from '@temporalio/worker';
import { decodeHistory } from './decode-history.ts';

/** @param name of the file in this folder, without its ending */
export function historyText(name: string): Promise<string> {
  return readFile(join(import.meta.dirname, `${name}.json`), 'utf8');
}

export async function replayOne(
  workflowBundle: WorkflowBundle,
  name: string,
  workflowId: string,
): Promise<ReplayResult> {
  const histories = [{ workflowId, history: decodeHistory(await historyText(name)) }];
  for await (const result of Worker.runReplayHistories({ workflowBundle }, histories)) return result;
  throw new Error('nothing was replayed');
}
