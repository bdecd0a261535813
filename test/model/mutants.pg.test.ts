/** The model finds faults: each is put into the journal on purpose, and a history that is fine without it breaks a rule. */

import { expect, test } from 'vitest';
import { createTestJournal } from '../support/journal.ts';
import { Player } from './history.ts';
import { MUTANTS, mutate } from './mutants.ts';

test.each(MUTANTS)('$name: found', async (mutant) => {
  const journal = await createTestJournal();
  try {
    await new Player(journal).play(mutant.plan);
    await mutate(journal.owner, mutant);
    await expect(new Player(journal).play(mutant.plan)).rejects.toThrow(mutant.breaks);
  } finally {
    await journal.close();
  }
});
