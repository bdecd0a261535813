/** Whether an index will do for an answer (design.md section 7): nothing that readers see there may be of another log. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { logPosition, sha256FromHex } from '../../src/domain/ids.ts';
import type { OwnBuild } from '../../src/indexing/indexer.ts';
import { asked } from '../../src/indexing/usable.ts';
import { logHead } from '../../src/journal/log.ts';
import { entryAt } from '../../src/journal/log-reader.ts';
import { IndexScene, rows } from '../support/index-scene.ts';

let scene: IndexScene;
beforeAll(async () => {
  scene = await IndexScene.open();
  await scene.history();
});
afterAll(() => scene.close());

test('rows of a page that was under way when the journal was restored are of another log: the index is passed over', async () => {
  const indexer = scene.indexer('people');
  await scene.follow(indexer);
  const [live] = await indexer.builds();
  if (live === undefined) throw new Error('not built');
  await scene.run('b', rows(0, 3, '1'));
  const { position } = await logHead(scene.journal.runtime);
  const entry = await entryAt(scene.journal.runtime, position);
  if (entry === null) throw new Error('no entry');
  const judged = (ahead: OwnBuild['ahead']) => {
    const answer = { kind: 'answered', build: { ...live, ahead }, found: [], more: false } as const;
    return asked(scene.journal.runtime, 1_000, async () => answer);
  };
  const { entryHash } = entry;
  expect(await judged(null)).toMatchObject({ kind: 'answered' });
  expect(await judged({ position, entryHash })).toMatchObject({ kind: 'answered' });
  // The log ends before that entry, or has another one there by now.
  const past = { position: logPosition(position + 1n), entryHash };
  expect(await judged(past)).toEqual({ kind: 'passed-over', code: 'index.ahead-of-log' });
  const other = { position, entryHash: sha256FromHex('ab'.repeat(32)) };
  expect(await judged(other)).toEqual({ kind: 'passed-over', code: 'index.log-diverged' });
});
