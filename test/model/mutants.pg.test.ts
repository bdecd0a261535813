/** The model finds faults: each is put into the journal on purpose, and a history that is fine without it breaks a rule. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { Player } from './history.ts';
import { MUTANTS, mutate } from './mutants.ts';

/** `npm run test:model` plays all of them; the default suite, every other one. */
const WHOLE = process.env.RETL_MODEL_HISTORIES !== undefined;
const PLAYED = MUTANTS.filter((_, n) => WHOLE || n % 2 === 0);

let sound: TestJournal;
let player: Player;
beforeAll(async () => {
  sound = await createTestJournal();
  player = new Player(sound);
});
afterAll(() => sound.close());

test.each(PLAYED)('$name: found', async (mutant) => {
  await player.play(mutant.plan);
  const journal = await createTestJournal();
  try {
    await mutate(journal.owner, mutant);
    await expect(new Player(journal).play(mutant.plan)).rejects.toThrow(mutant.breaks);
  } finally {
    await journal.close();
  }
});
