/**
 * Plays cells of the recovery matrix, group by group: every mirror of a group is brought to its point, there something befalls
 * the one worker or those around it, and all of them come to their ends and are held against their queries.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Servers } from '../support/servers.ts';
import type { System } from '../support/system.ts';
import type { Held } from '../support/system-journal-proxy.ts';
import { eventually } from '../support/system-scene.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import type { WorkerProcess } from '../support/worker-process.ts';
import { type Cell, endOf, type Result, type Stand, toItsEnd } from './ends.ts';
import { type Fate, KINDS, type Place, type Row } from './row.ts';
import { type Subject, subjectOf } from './subject.ts';

/** Mirrors that stand at their points at once: fewer than the activities that one worker carries out. */
const GROUP = 16;

/** Where cells are played; servers that can be restarted are their system's own. */
export interface Table {
  readonly system: System;
  readonly servers: Servers | null;
}

export function cellsOf(rows: readonly Row[]): readonly Cell[] {
  return rows.flatMap((row) => row.kinds.map((kind) => ({ row, kind })));
}

export function restarts({ fate }: Row): boolean {
  return fate === 'journal' || fate === 'temporal';
}

/** Plays all cells, group by group; `told` hears of each result. */
export async function playAll(
  table: Table,
  cells: readonly Cell[],
  told: (result: Result) => void,
): Promise<void> {
  for (const [fates, play] of PLAYS) {
    const list = cells.filter(({ row }) => fates.includes(row.fate));
    for (let at = 0; at < list.length; at += GROUP)
      for (const result of await played(play, table, list.slice(at, at + GROUP))) told(result);
  }
}

/** A group that does not come to its points is wrong as a whole, and leaves no worker behind. */
async function played(play: Play, table: Table, cells: readonly Cell[]): Promise<readonly Result[]> {
  try {
    return await play(table, cells);
  } catch (error) {
    await table.system.stopWorkers();
    const problem = `its group: ${error instanceof Error ? error.message : String(error)}`;
    return cells.map((cell) => ({ ...cell, end: endOf(cell), ms: 0, problem }));
  }
}

type Play = (table: Table, cells: readonly Cell[]) => Promise<readonly Result[]>;

const PLAYS: readonly (readonly [readonly Fate[], Play])[] = [
  [['kill', 'terminate'], playKilled],
  [['freeze'], playFrozen],
  [['cut'], playCut],
  [['journal'], (table, cells) => playRestart(table, cells, (servers) => servers.restartJournal())],
  [['temporal'], (table, cells) => playRestart(table, cells, (servers) => servers.restartTemporal())],
];

async function playKilled({ system }: Table, cells: readonly Cell[]): Promise<readonly Result[]> {
  const worker = await system.startWorker();
  const stands = await allStand(system, cells);
  for (const { subject } of stands) await subject.logged();
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
  return { ...stand, handle: await stand.subject.scene.start() };
}

/** A worker that wakes up when everything is over changes nothing any more: not in the journal, and not in a ledger. */
async function playFrozen({ system }: Table, cells: readonly Cell[]): Promise<readonly Result[]> {
  const { worker, line } = await workerOnALine(system);
  const stands = await allStand(system, cells);
  worker.freeze();
  // Else the server gives tasks to its open polls for a minute.
  line.cut();
  const next = await system.startWorker();
  const results = await Promise.all(stands.map(toItsEnd));
  const before = await Promise.all(stands.map(({ subject }) => subject.everything()));
  worker.thaw();
  for (const { release } of stands) release();
  await sleep(3_000);
  const after = await Promise.all(stands.map(({ subject }) => subject.everything()));
  await Promise.all([worker.kill(), next.stop()]);
  return results.map((result, i) => {
    const changed = before[i] !== after[i] && result.problem === null;
    return changed ? { ...result, problem: 'a frozen worker has changed something late' } : result;
  });
}

/** Two workers on one run: Temporal takes the first for dead, and it goes on beside the second. */
async function playCut({ system }: Table, cells: readonly Cell[]): Promise<readonly Result[]> {
  const { worker, line } = await workerOnALine(system);
  const stands = await allStand(system, cells);
  const epochs = await Promise.all(stands.map(({ subject }) => epochOf(subject)));
  line.refuse(true);
  line.cut();
  const next = await system.startWorker();
  const results = await Promise.all(
    stands.map(async (stand, i) => {
      await eventually(async () => (await epochOf(stand.subject)) !== epochs[i]);
      stand.release();
      return toItsEnd(stand);
    }),
  );
  await Promise.all([worker.kill(), next.stop()]);
  return results;
}

async function epochOf({ scene }: Subject): Promise<string> {
  const [run] = await scene.system.rows<{ epoch: string }>(
    `select max(epoch)::text as epoch from retl.run join retl.mirror using (mirror_id) where name = $1`,
    [scene.mirror],
  );
  return run?.epoch ?? '';
}

async function workerOnALine(
  system: System,
): Promise<{ readonly worker: WorkerProcess; readonly line: TcpProxy }> {
  const [host, port] = system.temporal.address.split(':');
  const line = await startTcpProxy({ host: host ?? '', port: Number(port) });
  system.defer(() => line.close());
  return { worker: await system.startWorker({ TEMPORAL_ADDRESS: `${line.host}:${line.port}` }), line };
}

/** The worker lives; a server that it needs dies at its point, and comes back. */
async function playRestart(
  { system, servers }: Table,
  cells: readonly Cell[],
  restart: (servers: Servers) => Promise<void>,
): Promise<readonly Result[]> {
  if (servers === null) throw new Error('no servers to restart');
  const worker = await system.startWorker();
  const stands = await allStand(system, cells);
  const back = restart(servers);
  // What had been asked of the one is answered while the other is away.
  if (cells.every(({ row }) => row.fate === 'temporal')) {
    await sleep(1_000);
    for (const { release } of stands) release();
  }
  await back;
  const results = await Promise.all(stands.map(toItsEnd));
  await worker.stop();
  return results;
}

async function allStand(system: System, cells: readonly Cell[]): Promise<readonly Stand[]> {
  const stands: Stand[] = [];
  for (const cell of cells) stands.push(await stand(system, cell));
  return stands;
}

/** Brings a mirror to its point. */
async function stand(system: System, cell: Cell): Promise<Stand> {
  const { row, kind } = cell;
  const subject = await subjectOf(system, row, kind);
  if (row.said !== null) return saidAt(system, cell, subject);
  const held = holdAt(system, subject, row.at);
  const handle = await subject.scene.start();
  if (held === null) await subject.scene.untilParked(handle);
  else await reached(row, held);
  return { ...cell, subject, handle, said: null, release: () => held?.release() };
}

/** It is parked, and somebody says something that the journal or the destination is to hear. */
async function saidAt(system: System, cell: Cell, subject: Subject): Promise<Stand> {
  const { scene } = subject;
  const handle = await scene.start();
  const asked = await scene.untilParked(handle);
  const held = holdAt(system, subject, cell.row.at);
  let said: Stand['said'] = null;
  if (cell.row.said === 'cancel' || cell.row.said === 'abort') await scene.signal(cell.row.said);
  else said = scene.answer(handle, cell.row.said ?? 'approve', asked);
  said?.catch(() => undefined);
  if (held !== null) await reached(cell.row, held);
  return { ...cell, subject, handle, said, release: () => held?.release() };
}

async function reached({ at }: Row, held: Held): Promise<void> {
  await held.reached;
  // What the server does with a statement that it has got is done once its answer could have come.
  if (at.kind === 'journal' && at.hold.how === 'unanswered') await sleep(200);
}

function holdAt(system: System, subject: Subject, at: Place): Held | null {
  switch (at.kind) {
    case 'journal':
      return system.proxy.hold(at.hold);
    case 'ledger':
      return subject.hold(at);
    case 'parked':
      return null;
  }
}

/** Rows by kinds: how each ended, and in how many seconds. */
export function tableOfResults(results: readonly Result[]): string {
  const rows = [...new Set(results.map(({ row }) => row))];
  const widths = [Math.max(...rows.map(({ name }) => name.length)), ...KINDS.map(() => 40)];
  const line = (cells: readonly string[]) => cells.map((text, i) => text.padEnd(widths[i] ?? 0)).join('  ');
  const cell = (row: Row, kind: Cell['kind']): string => {
    const found = results.find((result) => result.row === row && result.kind === kind);
    if (found === undefined) return row.kinds.includes(kind) ? '' : '-';
    const how = found.problem === null ? `ok, ${found.end}` : 'WRONG';
    return `${how} (${(found.ms / 1_000).toFixed(1)} s)`;
  };
  return [
    line(['what happens, and where', ...KINDS]),
    ...rows.map((row) => line([row.name, ...KINDS.map((kind) => cell(row, kind))])),
  ].join('\n');
}
