/**
 * Plays cells of the recovery matrix: every mirror of a group is brought to its point, the one worker dies there by SIGKILL,
 * another one takes all of them to their ends, and the ledgers are held against their queries.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { expect } from 'vitest';
import { LedgerScene, type RecoveryKind } from '../support/ledger-scene.ts';
import type { System } from '../support/system.ts';
import type { Held } from '../support/system-journal-proxy.ts';
import { completedBy, ending } from '../support/system-scene.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import type { Place, Row } from './rows.ts';

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
  const freezing = cells.filter(({ row }) => row.fate === 'freeze');
  const dying = cells.filter(({ row }) => row.fate !== 'freeze');
  for (const [list, play] of [
    [dying, playGroup],
    [freezing, playFrozen],
  ] as const) {
    for (let at = 0; at < list.length; at += GROUP)
      for (const result of await play(system, list.slice(at, at + GROUP))) told(result);
  }
}

interface Stand extends Cell {
  readonly scene: LedgerScene;
  readonly handle: Handle;
  /** Lets go on what is held, where somebody still waits for it. */
  release(): void;
}

async function playGroup(system: System, cells: readonly Cell[]): Promise<readonly Result[]> {
  const worker = await system.startWorker();
  const stands: Stand[] = [];
  for (const cell of cells) stands.push(await stand(system, cell));
  for (const { scene } of stands) await scene.logged();
  // Both of them poll for a moment: whatever the one does not finish, the other one takes.
  const next = await system.startWorker();
  await worker.kill();
  const results = await Promise.all(stands.map(async (s) => toItsEnd(await terminated(s))));
  await next.stop();
  return results;
}

/** The workflow is terminated by somebody, and started again. */
async function terminated(stand: Stand): Promise<Stand> {
  if (stand.row.fate !== 'terminate') return stand;
  await stand.handle.terminate('by a test');
  return { ...stand, handle: await stand.scene.start() };
}

/** A worker that wakes up when everything is over changes nothing any more: not in the journal, and not in a ledger. */
async function playFrozen(system: System, cells: readonly Cell[]): Promise<readonly Result[]> {
  const [host, port] = system.temporal.address.split(':');
  const line = await startTcpProxy({ host: host ?? '', port: Number(port) });
  system.defer(() => line.close());
  const worker = await system.startWorker({ TEMPORAL_ADDRESS: `${line.host}:${line.port}` });
  const stands: Stand[] = [];
  for (const cell of cells) stands.push(await stand(system, cell));
  worker.freeze();
  // Else the server gives tasks to its open polls for a minute.
  line.cut();
  const next = await system.startWorker();
  const results = await Promise.all(stands.map(toItsEnd));
  const before = await Promise.all(stands.map(({ scene }) => scene.everything()));
  worker.thaw();
  for (const { release } of stands) release();
  await sleep(3_000);
  const after = await Promise.all(stands.map(({ scene }) => scene.everything()));
  await Promise.all([worker.kill(), next.stop()]);
  return results.map((result, i) => {
    const changed = before[i] !== after[i] && result.problem === null;
    return changed ? { ...result, problem: 'a frozen worker has changed something late' } : result;
  });
}

let serial = 0;

/** Brings a mirror to its point. */
async function stand(system: System, cell: Cell): Promise<Stand> {
  serial += 1;
  const scene = await LedgerScene.create(
    system,
    `cell-${serial}-${cell.kind}`,
    cell.kind,
    MODES[cell.row.scene],
    SETTINGS[cell.row.scene],
  );
  if (['removals', 'replace', 'publish'].includes(cell.row.scene)) {
    await scene.completed();
    await scene.exec(
      `delete from $table where id < 'm003'; update $table set plan = 'gold' where id = 'm003'`,
    );
  }
  if (cell.row.scene === 'parked') {
    await scene.completed();
    await scene.exec(`delete from $table where id < 'm005'`);
  }
  if (cell.row.scene === 'refresh') {
    await scene.completed();
    await sleep(1_100);
  }
  if (cell.row.scene === 'tolerated' || cell.row.scene === 'held') scene.ledger.refuses.add('m005');
  if (cell.row.scene === 'busy') scene.ledger.busy = 1;
  const { at } = cell.row;
  const held = holdAt(system, scene, at);
  const handle = await scene.start();
  if (held === null) await scene.untilParked(handle);
  else await held.reached;
  // What the server does with a statement that it has got is done once its answer could have come.
  if (at.kind === 'journal' && at.hold.how === 'unanswered') await sleep(200);
  return { ...cell, scene, handle, release: () => held?.release() };
}

function holdAt(system: System, scene: LedgerScene, at: Place): Held | null {
  switch (at.kind) {
    case 'journal':
      return system.proxy.hold(at.hold);
    case 'ledger':
      return scene.ledger.hold(at.hold);
    case 'parked':
      return null;
  }
}

/** Members added, changed and removed, or uploaded and dropped, over the scene's runs. */
const EFFECTS: Readonly<Record<Row['scene'], number>> = {
  first: 6,
  busy: 6,
  removals: 6 + 2 + 1,
  parked: 6 + 4,
  later: 6,
  replace: 6 + 4 + 2,
  slow: 6,
  publish: 6 + 4 + 2,
  tolerated: 5,
  held: 6,
  refresh: 6 + 6,
};

const MODES = {
  first: 'direct',
  busy: 'direct',
  removals: 'direct',
  parked: 'direct',
  later: 'later',
  replace: 'replace',
  slow: 'slow',
  publish: 'publish',
  tolerated: 'direct',
  held: 'direct',
  refresh: 'direct',
} as const;

/** Sections of the mirror's file. */
const SETTINGS: { readonly [scene in Row['scene']]?: { readonly [section: string]: unknown } } = {
  tolerated: { on_rejection: { tolerate: { max: 1 } } },
  held: { on_rejection: 'continue' },
  refresh: { refresh_after: '1s' },
};

/** Takes a mirror to its end, as a person would who looks after it. */
async function toItsEnd(stand: Stand): Promise<Result> {
  const { row, kind, scene, handle } = stand;
  const begun = performance.now();
  const end = endOf(stand);
  let problem: string | null = null;
  try {
    if (row.scene === 'parked') await scene.approve(handle);
    await unblocked(stand, end);
    if (row.scene === 'held') await heldThenMended(stand);
    else await inTime(completedBy(handle));
    await scene.expectExact(EFFECTS[row.scene]);
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  return { row, kind, end, ms: performance.now() - begun, problem };
}

/** It delivers everybody else, and ends as rejected; the next run delivers the one, whom the ledger takes by then. */
async function heldThenMended({ scene, handle }: Stand): Promise<void> {
  await inTime(ending(handle).then((end) => expect(end).toMatchObject({ kind: 'failed', type: 'rejected' })));
  expect(scene.ledger.effects).toHaveLength(5);
  scene.ledger.refuses.clear();
  await inTime(scene.completed());
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
