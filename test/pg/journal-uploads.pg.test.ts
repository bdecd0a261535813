/** What a finish is told of the uploads that it concludes. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { settledUploads } from '../../src/journal/batch-record.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';
import { BatchScene } from '../support/journal-scene.ts';

const scene = new BatchScene();

beforeAll(() => scene.open());
afterAll(() => scene.close());

test('the accepted uploads of a run are read page by page, in order, and no other batch with them', async () => {
  const run = await ScriptedRun.open(scene.journal.runtime, { mirror: scene.name() });
  await run.upToAdditions(rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1' }));
  const [first, second] = await run.deliver('upsert', { size: 2, count: 2 });
  const [open] = await run.prepare('upsert', 2);
  const read = (after: bigint, limit: number) =>
    settledUploads(scene.journal.runtime, run.attempt, after, limit);
  const whole = await read(0n, 10);
  expect(whole.map(({ id, accepted }) => ({ id, accepted }))).toEqual([
    { id: first?.id, accepted: 2 },
    { id: second?.id, accepted: 2 },
  ]);
  expect(whole.map(({ receipt }) => JSON.parse(receipt))).toEqual([{ ok: true }, { ok: true }]);
  const page = await read(0n, 1);
  expect(page).toEqual(whole.slice(0, 1));
  expect(await read(page[0]?.last ?? 0n, 1)).toEqual(whole.slice(1));
  expect(whole.some(({ id }) => id === open?.id)).toBe(false);
});
