/** The workflow with a change that no sleeping execution would survive, to prove that a replay would notice. */

import { sleep } from '@temporalio/workflow';
import type { IndexInput, IndexResult } from '../../src/domain/index-messages.ts';
import type { MaintenanceInput, MaintenanceResult } from '../../src/domain/maintenance.ts';
import type { MirrorInput, MirrorResult } from '../../src/domain/messages.ts';
import {
  mirror as current,
  index as currentIndex,
  maintenance as currentMaintenance,
} from '../../src/workflows/index.ts';

export async function mirror(input: MirrorInput): Promise<MirrorResult> {
  await sleep(1);
  return current(input);
}

export async function index(input: IndexInput): Promise<IndexResult> {
  await sleep(1);
  return currentIndex(input);
}

export async function maintenance(input: MaintenanceInput): Promise<MaintenanceResult> {
  await sleep(1);
  return currentMaintenance(input);
}
