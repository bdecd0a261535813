/** An index beside a mirror, on one real worker: the run's completion wakes it (design.md section 8). */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { indexProgress, runIndex, signalIndex } from '../../src/client/indexes.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { eventually } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
});
afterAll(() => system.stop());

test('it has caught up once a run has completed, which has woken it; stopped, it ends', async () => {
  const scene = await HttpScene.create(system, 'indexed', { rows: 12, idempotent: true });
  const settings: object = parse(await readFile(join(system.project.folder, 'retl.yaml'), 'utf8'));
  await system.write('retl.yaml', { ...settings, indexes: { people: { kind: 'membership-search' } } });
  await system.startWorker();
  const workflowId = await runIndex(system.temporal, 'people');
  const progress = async () => indexProgress(system.temporal, 'people');
  await eventually(async () => (await progress())?.phase === 'caught-up');
  await scene.completed();
  await eventually(async () => (await progress())?.place?.rows === '12');
  const shown = await system.rows<{ mirror: string }>('select distinct mirror from retl_index.people');
  expect(shown).toEqual([{ mirror: 'indexed' }]);
  expect(await signalIndex(system.temporal, 'people', 'stop')).toBe(true);
  const handle = system.temporal.client.workflow.getHandle(workflowId);
  expect(await handle.result()).toMatchObject({ outcome: 'stopped', place: { rows: '12' } });
  const { events } = await handle.fetchHistory();
  const signals = events?.map((event) => event.workflowExecutionSignaledEventAttributes?.signalName);
  // One with its start, one from the run.
  expect(signals?.filter((name) => name === 'wake')).toHaveLength(2);
});
