/** The whole recovery matrix (design.md section 6): rows by kinds of destination, printed as a table at the end. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { LEDGER_WORKER } from '../support/ledger-scene.ts';
import { Servers } from '../support/servers.ts';
import { System } from '../support/system.ts';
import { SALESFORCE_ENV } from '../support/system-salesforce.ts';
import { endOf, type Result } from './ends.ts';
import { cellsOf, playAll, restarts, type Table, tableOfResults } from './matrix.ts';
import { REAL_ROWS } from './real-rows.ts';
import { ROWS } from './rows.ts';
import { STORE_ENV } from './store-scene.ts';

/** Part of a row's name: only those are played. */
const ONLY = process.env.RETL_MATRIX ?? '';
const CELLS = cellsOf([...ROWS, ...REAL_ROWS].filter((row) => row.name.includes(ONLY)));
const results: Result[] = [];

/** Tells of each result as it comes: the whole takes a while. */
function told(result: Result): void {
  results.push(result);
  const { row, kind, problem } = result;
  process.stdout.write(`${results.length}/${CELLS.length} ${kind}: ${row.name}: ${problem ?? 'ok'}\n`);
}

async function play(table: Table, cells: typeof CELLS): Promise<void> {
  try {
    await playAll(table, cells, told);
  } finally {
    await table.system.stop();
    await table.servers?.stop();
  }
}

beforeAll(async () => {
  const options = { worker: LEDGER_WORKER, env: { ...SALESFORCE_ENV, ...STORE_ENV } };
  const lasting = CELLS.filter(({ row }) => !restarts(row));
  await play({ system: await System.start(options), servers: null }, lasting);
  if (lasting.length === CELLS.length) return;
  const servers = await Servers.start();
  const system = await System.start({ ...options, ...servers.options });
  await play(
    { system, servers },
    CELLS.filter(({ row }) => restarts(row)),
  );
}, 3_600_000);
afterAll(() => {
  process.stdout.write(`\n${tableOfResults(results)}\n`);
});

test.each(CELLS.map((cell) => ({ name: cell.row.name, kind: cell.kind, end: endOf(cell) })))(
  '$kind, killed: $name: $end',
  ({ name, kind }) => {
    const found = results.find((result) => result.row.name === name && result.kind === kind);
    expect(found).toMatchObject({ problem: null });
  },
);
