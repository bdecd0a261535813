/**
 * Plays cells of the recovery matrix: every mirror of a group is brought to its point, the one worker dies there by SIGKILL,
 * another one takes all of them to their ends, and the ledgers are held against their queries.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { expect } from 'vitest';
import { LedgerScene, type RecoveryKind } from '../support/ledger-scene.ts';
import type { System } from '../support/system.ts';
import { completedBy } from '../support/system-scene.ts';
import type { Row } from './rows.ts';

export const KINDS: readonly RecoveryKind[] = ['idempotent', 'lookup', 'manual'];

export interface Cell {
  readonly row: Row;
  readonly kind: RecoveryKind;
}

/** How a cell comes to its end. */
type End = 'goes on' | 'waits for the send deadline' | 'blocked, then resolved';

export interface Result extends Cell {
  readonly end: End;
  readonly ms: number;
  /** What was wrong; null where nothing was. */
  readonly problem: string | null;
}

/** Mirrors that stand at their points at once: fewer than the activities that one worker carries out. */
const GROUP = 16;

/** What design.md section 6 says of a request on its way, by the kind of the destination. */
export function endOf({ row, kind }: Cell): End {
  if (row.onItsWay === null || kind === 'idempotent') return 'goes on';
  if (kind === 'manual') return 'blocked, then resolved';
  return row.onItsWay === 'applied' ? 'goes on' : 'waits for the send deadline';
}

export function cellsOf(rows: readonly Row[]): readonly Cell[] {
  return rows.flatMap((row) => KINDS.map((kind) => ({ row, kind })));
}

/** Plays all cells, group by group; `told` hears of each result. */
export async function playAll(
  system: System,
  cells: readonly Cell[],
  told: (result: Result) => void,
): Promise<void> {
  for (let at = 0; at < cells.length; at += GROUP) {
    for (const result of await playGroup(system, cells.slice(at, at + GROUP))) told(result);
  }
}

interface Stand extends Cell {
  readonly scene: LedgerScene;
  readonly handle: Handle;
}

async function playGroup(system: System, cells: readonly Cell[]): Promise<readonly Result[]> {
  const worker = await system.startWorker();
  const stands: Stand[] = [];
  for (const cell of cells) stands.push(await stand(system, cell));
  for (const { scene } of stands) await scene.logged();
  await worker.kill();
  const next = await system.startWorker();
  const results = await Promise.all(stands.map(toItsEnd));
  await next.stop();
  return results;
}

let serial = 0;

/** Brings a mirror to its point. */
async function stand(system: System, cell: Cell): Promise<Stand> {
  serial += 1;
  const scene = await LedgerScene.create(system, `cell-${serial}-${cell.kind}`, cell.kind);
  if (cell.row.scene === 'removals') {
    await scene.completed();
    await scene.exec(
      `delete from $table where id < 'm003'; update $table set plan = 'gold' where id = 'm003'`,
    );
  }
  if (cell.row.scene === 'busy') scene.ledger.busy = 1;
  const { at } = cell.row;
  const held = at.kind === 'journal' ? system.proxy.hold(at.hold) : scene.ledger.hold(at.hold);
  const handle = await scene.start();
  await held.reached;
  // What the server does with a statement that it has got is done once its answer could have come.
  if (at.kind === 'journal' && at.hold.how === 'unanswered') await sleep(200);
  return { ...cell, scene, handle };
}

/** Takes a mirror to its end, as a person would who looks after it. */
async function toItsEnd(stand: Stand): Promise<Result> {
  const { row, kind, scene, handle } = stand;
  const begun = performance.now();
  const end = endOf(stand);
  let problem: string | null = null;
  try {
    await unblocked(stand, end);
    await inTime(completedBy(handle));
    await scene.expectExact(row.scene === 'removals' ? 6 + 2 + 1 : 6);
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  return { row, kind, end, ms: performance.now() - begun, problem };
}

const PATIENCE_MS = 120_000;

async function inTime(work: Promise<unknown>): Promise<void> {
  const stop = new AbortController();
  const late = sleep(PATIENCE_MS, undefined, { signal: stop.signal }).then(() => {
    throw new Error('it does not come to an end');
  });
  await Promise.race([work, late]).finally(() => stop.abort());
}

async function unblocked({ row, scene, handle }: Stand, end: End): Promise<void> {
  if (end === 'goes on') return;
  const { waiting } = await scene.until(handle, (p) =>
    end === 'blocked, then resolved'
      ? p.waiting?.kind === 'blocked'
      : p.waiting?.code === 'before-send-deadline',
  );
  // At every moment at which somebody looks, the journal says no more than is so.
  await scene.logged();
  const batch = waiting?.batch ?? '';
  expect(batch).toMatch(/^sha256:/);
  if (end === 'blocked, then resolved') {
    await scene.resolve(batch, row.onItsWay === 'applied' ? 'accepted' : 'not-applied');
  } else await scene.passDeadline();
  await scene.signal('resume');
}

/** Rows by kinds: how each ended, and in how many seconds. */
export function tableOfResults(results: readonly Result[]): string {
  const rows = [...new Set(results.map(({ row }) => row))];
  const widths = [Math.max(...rows.map(({ name }) => name.length)), ...KINDS.map(() => 40)];
  const line = (cells: readonly string[]) => cells.map((text, i) => text.padEnd(widths[i] ?? 0)).join('  ');
  const cell = (row: Row, kind: RecoveryKind): string => {
    const found = results.find((result) => result.row === row && result.kind === kind);
    if (found === undefined) return '';
    const how = found.problem === null ? `ok, ${found.end}` : 'WRONG';
    return `${how} (${(found.ms / 1_000).toFixed(1)} s)`;
  };
  return [
    line(['the worker dies', ...KINDS]),
    ...rows.map((row) => line([row.name, ...KINDS.map((kind) => cell(row, kind))])),
  ].join('\n');
}
