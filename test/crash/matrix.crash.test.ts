/** The whole recovery matrix (design.md section 6): rows by kinds of destination, printed as a table at the end. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { LEDGER_WORKER } from '../support/ledger-scene.ts';
import { System } from '../support/system.ts';
import { cellsOf, endOf, playAll, type Result, tableOfResults } from './matrix.ts';
import { ROWS } from './rows.ts';

/** Part of a row's name: only those are played. */
const ONLY = process.env.RETL_MATRIX ?? '';
const CELLS = cellsOf(ROWS.filter((row) => row.name.includes(ONLY)));
const results: Result[] = [];
let system: System;

beforeAll(async () => {
  system = await System.start({ worker: LEDGER_WORKER });
  await playAll(system, CELLS, (result) => results.push(result));
}, 3_600_000);
afterAll(async () => {
  await system.stop();
  process.stdout.write(`\n${tableOfResults(results)}\n`);
});

test.each(CELLS.map((cell) => ({ name: cell.row.name, kind: cell.kind, end: endOf(cell) })))(
  '$kind, killed: $name: $end',
  ({ name, kind }) => {
    const found = results.find((result) => result.row.name === name && result.kind === kind);
    expect(found).toMatchObject({ problem: null });
  },
);
