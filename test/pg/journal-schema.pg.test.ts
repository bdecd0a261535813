/** migrations/schema.sql is the schema that the migrations make. `npm run schema:journal` writes it anew. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { describeSchema } from '../support/journal-schema.ts';

let journal: TestJournal;

beforeAll(async () => {
  journal = await createTestJournal();
});
afterAll(() => journal.close());

test('the committed schema is current: review sees what a migration changes', async () => {
  await expect(await describeSchema(journal.admin)).toMatchFileSnapshot('../../migrations/schema.sql');
});
