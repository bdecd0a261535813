/** Replays one recorded history that a test names by its file. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ReplayResult, Worker, type WorkflowBundle } from '@temporalio/worker';
import { bundleOf } from '../workflow/stage.ts';
import { decodeHistory } from './decode-history.ts';

/** The workflows of today, and ones that have changed their ways. */
export function bundles(): Promise<[current: WorkflowBundle, altered: WorkflowBundle]> {
  return Promise.all([bundleOf('src/workflows/index.ts'), bundleOf('test/replay/altered-workflow.ts')]);
}

/** @param name of the file in this folder, without its ending */
export function historyText(name: string): Promise<string> {
  return readFile(join(import.meta.dirname, `${name}.json`), 'utf8');
}

/** Under the id that it ran under, which a workflow may go by. */
export async function replayOne(workflowBundle: WorkflowBundle, name: string): Promise<ReplayResult> {
  const history = decodeHistory(await historyText(name));
  const workflowId = history.events?.[0]?.workflowExecutionStartedEventAttributes?.workflowId ?? '';
  const histories = [{ workflowId, history }];
  for await (const result of Worker.runReplayHistories({ workflowBundle }, histories)) return result;
  throw new Error('nothing was replayed');
}
