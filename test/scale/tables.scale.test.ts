/** Hundreds of thousands of messy rows from table to table, compared column by column after each of several changes. */

import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { TableScene } from '../support/system-destinations.ts';
import type { WorkerProcess } from '../support/worker-process.ts';
import {
  COLUMNS,
  createTable,
  deleteRows,
  fingerprint,
  insertRows,
  swapKeys,
  TYPES,
  updateRows,
} from './messy.ts';

const ROWS = Number(process.env.SCALE_ROWS ?? 300_000);

/** With room to spare a heap grows because nobody tidies up; what must be held shows only where there is little. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=128' };

let system: System;
beforeAll(async () => {
  system = await System.start();
});
afterAll(() => system.stop());

const fields = (columns: typeof COLUMNS) => Object.fromEntries(columns.map(([name]) => [name, name]));

function messyScene(name: string, rows: number): Promise<TableScene> {
  return TableScene.create(system, name, {
    rows: `${TYPES} ${createTable('$table')}; ${insertRows('$table', 1, rows, 1)}; analyze $table`,
    query: 'select * from $table',
    key: ['select', 'a b'],
    target: `${TYPES} ${createTable('audience')}`,
    mirror: {
      members: { identity: fields(COLUMNS.slice(0, 2)), payload: fields(COLUMNS.slice(2)) },
      batch: { rows: 1000, in_flight: 4 },
    },
  });
}

/** Most memory that the process has ever had, in MB. */
async function peakMb(worker: WorkerProcess): Promise<number> {
  const status = await readFile(`/proc/${worker.program.child.process.pid}/status`, 'utf8');
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}

async function expectEqual(scene: TableScene): Promise<void> {
  const [target] = await scene.targetRows(fingerprint('audience'));
  const [source] = await scene.sourceRows(fingerprint('$table'));
  expect(target).toEqual(source);
}

describe('messy rows by the hundred thousand', () => {
  test('arrive exactly, five rounds of changes too, in bounded memory', async () => {
    const small = await system.startWorker(SMALL_HEAP);
    const tenth = await messyScene('tenth', ROWS / 10);
    await tenth.completed();
    await expectEqual(tenth);
    const smallMb = await peakMb(small);
    await small.stop();
    await system.source.query(
      `drop table ${tenth.table}; drop type messy_mood cascade; drop type messy_pair cascade; drop domain messy_code cascade`,
    );

    const worker = await system.startWorker(SMALL_HEAP);
    const scene = await messyScene('whole', ROWS);
    const started = Date.now();
    const first = await scene.completed();
    const seconds = [(Date.now() - started) / 1000];
    await expectEqual(scene);
    expect(first.counts).toMatchObject({ added: ROWS });
    for (let round = 1; round <= 5; round++) {
      await scene.exec(`${updateRows('$table', 100, round)}; ${swapKeys('$table', 300)};
        ${deleteRows('$table', 150, round)}; ${insertRows('$table', ROWS * (round + 1), ROWS * (round + 1) + ROWS / 200, round)}`);
      const begun = Date.now();
      await scene.completed();
      seconds.push((Date.now() - begun) / 1000);
      await expectEqual(scene);
    }
    const wholeMb = await peakMb(worker);
    process.stdout.write(
      `rows ${ROWS}: ${seconds.map((s) => s.toFixed(1)).join(', ')} s; peak ${smallMb} MB at a tenth, ${wholeMb} MB\n`,
    );
    expect(wholeMb).toBeLessThan(Math.max(smallMb * 1.25, smallMb + 50));
  });
});
