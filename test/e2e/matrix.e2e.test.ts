/** A few telling cells of the recovery matrix (design.md section 6); `npm run test:matrix` plays all of them. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cell, endOf, type Result } from '../crash/ends.ts';
import { cellsOf, playAll } from '../crash/matrix.ts';
import { ROWS } from '../crash/rows.ts';
import { LEDGER_WORKER } from '../support/ledger-scene.ts';
import { System } from '../support/system.ts';

const TELLING: readonly string[] = [
  'the session is open',
  'after the id of the upload is saved',
  'before the receipt',
  'after the receipt of the finish',
];

const CELLS: readonly Cell[] = cellsOf(ROWS.filter((row) => TELLING.includes(row.name)));
const results: Result[] = [];
let system: System;

beforeAll(async () => {
  system = await System.start({ worker: LEDGER_WORKER });
  await playAll({ system, servers: null }, CELLS, (result) => results.push(result));
}, 300_000);
afterAll(() => system.stop());

test.each(CELLS.map((cell) => ({ name: cell.row.name, kind: cell.kind, end: endOf(cell) })))(
  '$kind, killed: $name: $end',
  ({ name, kind }) => {
    const found = results.find((result) => result.row.name === name && result.kind === kind);
    expect(found).toMatchObject({ problem: null });
  },
);
