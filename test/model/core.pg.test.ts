/**
 * The core against a model (design.md sections 4 to 6): the real activities and the real journal, between a source and a
 * destination that the model controls, with answers lost, refusals, workers killed or frozen at any statement, and people
 * who cancel, abort and decide. `RETL_MODEL_HISTORIES` and `RETL_MODEL_MS` say how much of it; `RETL_MODEL_SEED` repeats a run,
 * `RETL_MODEL_SHRINK=1` looks for the shortest history that fails. What it found stands in found.json, and is played first.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { HISTORY, type HistoryPlan, Player } from './history.ts';

const HISTORIES = Number(process.env.RETL_MODEL_HISTORIES ?? 150);
const TIME_MS = Number(process.env.RETL_MODEL_MS ?? 30_000);
const SEED = Number(process.env.RETL_MODEL_SEED ?? Date.now() % 2 ** 31);

let journal: TestJournal;
let player: Player;

beforeAll(async () => {
  journal = await createTestJournal();
  player = new Player(journal);
});
afterAll(() => journal.close());

/** Histories that once broke a rule, each with what was wrong. */
const FOUND = JSON.parse(readFileSync(join(import.meta.dirname, 'found.json'), 'utf8')) as readonly {
  readonly what: string;
  readonly plan: HistoryPlan;
}[];

test.each(FOUND)('found before: $what', async ({ plan }) => {
  await player.play(plan);
});

test('whatever happens in whatever order, every rule holds after every step, and the end is exact', {
  timeout: TIME_MS * 2 + 60_000,
}, async () => {
  process.stdout.write(`model: seed ${SEED}, ${HISTORIES} histories or ${TIME_MS} ms\n`);
  await fc.assert(
    fc.asyncProperty(HISTORY, (plan) => player.play(plan)),
    {
      seed: SEED,
      numRuns: HISTORIES,
      interruptAfterTimeLimit: TIME_MS,
      endOnFailure: process.env.RETL_MODEL_SHRINK !== '1',
    },
  );
  process.stdout.write(`model: ${JSON.stringify(Object.fromEntries(player.coverage.counts))}\n`);
  expect(player.coverage.counts.get('completed')).toBeGreaterThan(0);
});
