/** Each refusal of an index and the remedies that its code names, to the end: the index then says what the log says (design.md section 7). */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { CHECKPOINT_ARTIFACT } from '../../src/domain/artifact.ts';
import { decodeCheckpoint, encodeCheckpoint } from '../../src/domain/checkpoint-codec.ts';
import type { ArtifactReference, BuildId } from '../../src/domain/ids.ts';
import type { Indexer } from '../../src/indexing/indexer.ts';
import { rebuild, rollback } from '../../src/indexing/rebuild.ts';
import { verifyCheckpoints } from '../../src/indexing/verify-checkpoints.ts';
import { verifyIndex } from '../../src/indexing/verify-index.ts';
import { journalArtifacts } from '../../src/journal/artifacts.ts';
import { hashBytes } from '../../src/journal/batches.ts';
import { checkpointsOf } from '../../src/journal/checkpoints.ts';
import { logHead } from '../../src/journal/log.ts';
import { compactTo } from '../support/compact.ts';
import { IndexScene, rows, SCHEMA } from '../support/index-scene.ts';
import { type IndexPlace, POSTGRES } from './home.ts';
import { restoredJournal } from './rebuild.contract.ts';

let scene: IndexScene;
let place: IndexPlace;
let others: readonly IndexScene[];
beforeAll(async () => {
  scene = await IndexScene.open();
  place = await POSTGRES.open(scene);
  await scene.history();
  const foreign = await IndexScene.open();
  const [older, regrown] = [await restoredJournal(scene), await restoredJournal(scene)];
  others = [foreign, older, regrown];
  for (const grown of [foreign, regrown]) for (let n = 0; n < 2; n += 1) await grown.history();
});
afterAll(() => Promise.all([scene, ...others].map((one) => one.close())));

/** What has happened to an index that had caught up, and what is done about it. */
interface Case {
  /** Another index takes it over: of another definition, say. */
  readonly as?: 'changed';
  /** Which of the other journals it is pointed at. */
  readonly at?: number;
  readonly breaks?: (indexer: Indexer) => Promise<unknown>;
  readonly mends: (indexer: Indexer) => Promise<unknown>;
  /** Its checkpoint is gone for good: the audit goes on naming it. */
  readonly lost?: true;
}

const rebuilt = (indexer: Indexer) => rebuild(scene.deps(), indexer);
const nothing = async (): Promise<void> => undefined;

const CASES: { readonly [what: string]: Case } = {
  'index.checkpoint-version: written by a newer release': {
    breaks: (indexer) => replaceCheckpoint(indexer, (bytes) => bytes.fill(2, 3, 4)),
    mends: rebuilt,
    lost: true,
  },
  'index.checkpoint-damaged: of another position': {
    breaks: (indexer) => replaceCheckpoint(indexer, elsewhere),
    // To an earlier checkpoint of the same build, and on from there.
    mends: async (indexer) => {
      const [, , earlier] = await checkpointsOf(scene.journal.runtime, await buildIdOf(indexer), null, 3);
      if (earlier === undefined) throw new Error('no earlier checkpoint');
      expect(await rollback(scene.deps(), indexer, earlier.reference)).toMatchObject({ kind: 'chosen' });
      expect(await scene.follow(indexer)).toMatchObject({ kind: 'frozen', position: earlier.position });
      await rebuilt(indexer);
    },
    lost: true,
  },
  'artifact.corrupt: restored from a backup': {
    breaks: () => artifact('update', 'set bytes = set_byte(bytes, 9, 255)'),
    mends: restoredArtifact,
  },
  'artifact.missing: restored from a backup': {
    breaks: () => artifact('delete from', ''),
    mends: restoredArtifact,
  },
  'index.definition-changed: the definition is restored': { as: 'changed', mends: nothing },
  'index.other-log: pointed at its own journal again': { at: 0, mends: nothing },
  'index.ahead-of-log: a newer backup is restored': { at: 1, mends: nothing },
  'index.log-diverged: the journal that it was built from is restored': { at: 2, mends: nothing },
  'index.log-diverged: what it says of its own entry was changed': {
    breaks: (indexer) =>
      scene.tamper(`update ${SCHEMA}.index_build set entry_hash = $1 where index_name = $2`, [
        `sha256:${'07'.repeat(32)}`,
        indexer.definition.name,
      ]),
    mends: rebuilt,
  },
  'index.snapshot-mismatch: built anew': {
    breaks: async (indexer) => {
      const { position } = await logHead(scene.journal.runtime);
      await compactTo(scene.journal.runtime, Number(position));
      await rebuilt(indexer);
      await scene.follow(indexer);
      await scene.tamper(`update ${SCHEMA}.index_build set snapshot_digest = $1 where index_name = $2`, [
        `sha256:${'12'.repeat(32)}`,
        indexer.definition.name,
      ]);
    },
    mends: rebuilt,
  },
  'index.registry-mismatch: the tables of the index were restored from a backup': {
    breaks: async (indexer) => {
      const restore = await backedUp(await buildIdOf(indexer));
      await scene.run('restored', rows(0, 3, '1'));
      await scene.follow(indexer);
      await restore();
    },
    mends: rebuilt,
  },
  'index.registry-mismatch: the journal was restored to before its last checkpoints': {
    breaks: async (indexer) => {
      const newest = `select position from retl.checkpoint where build_id = $1 order by position desc limit 2`;
      await scene.tamper(`delete from retl.checkpoint where build_id = $1 and position in (${newest})`, [
        await buildIdOf(indexer),
      ]);
    },
    mends: rebuilt,
  },
};

test.each(Object.entries(CASES))('%s', async (what, { as, at, breaks, mends, lost }) => {
  const [code = ''] = what.split(':');
  const name = `case-${Object.keys(CASES).indexOf(what)}`;
  const indexer = await place.indexer(name);
  expect(await scene.follow(indexer, 3)).toMatchObject({ kind: 'caught-up' });
  saved = await savedOf(indexer);
  await breaks?.(indexer);
  const refused = as === undefined ? indexer : await place.indexer(name, as);
  const where = at === undefined ? scene : others[at];
  const [shown, builds] = [await scene.shown(name), await indexer.builds()];
  // Whoever meets it again is told the same, and nothing has been changed.
  for (let n = 0; n < 2; n += 1) expect(await where?.follow(refused)).toMatchObject({ code, remedy: 'stop' });
  expect(await scene.shown(name)).toBe(shown);
  expect(await indexer.builds()).toEqual(builds);
  expect(await verifyIndex((where ?? scene).deps(), refused)).toMatchObject({ code });

  await mends(indexer);
  await scene.run(name, rows(0, 3, '1'));
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up', state: 'live' });
  expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({
    kind: 'compared',
    missing: 0n,
    unexpected: 0n,
  });
  expect(await scene.shown(name)).toBe(await scene.expected());
  const store = journalArtifacts(scene.journal.runtime);
  const { faults } = await verifyCheckpoints(scene.journal.runtime, store, name);
  expect(faults.map((fault) => fault.code)).toEqual(lost === undefined ? [] : [code]);
});

test('an index whose builder died before the registry heard of its last checkpoint is in order, and the next one registers it', async () => {
  const indexer = await place.indexer('unheard');
  await scene.follow(indexer, 3);
  const build = await buildIdOf(indexer);
  await scene.tamper(
    'delete from retl.checkpoint where build_id = $1 and position = (select max(position) from retl.checkpoint where build_id = $1)',
    [build],
  );
  expect(await verifyIndex(scene.deps(), indexer)).toMatchObject({ missing: 0n, unexpected: 0n });
  expect(await scene.follow(indexer)).toMatchObject({ kind: 'caught-up' });
  const [newest] = await checkpointsOf(scene.journal.runtime, build, null, 1);
  expect(newest?.reference).toBe(await scene.checkpoint(indexer));
});

/** Takes a backup of what the index has; the answer puts it back. */
async function backedUp(build: BuildId): Promise<() => Promise<void>> {
  const { rows: live } = await scene.journal.admin.query<{ table_id: string }>(
    `select table_id from ${SCHEMA}.index_build where build_id = $1`,
    [build],
  );
  const tables = [`${SCHEMA}.index_build`, `${SCHEMA}.rows_${live[0]?.table_id}`];
  for (const [n, table] of tables.entries())
    await scene.tamper(`create table public.backup_${n} as select * from ${table}`);
  return async () => {
    for (const [n, table] of tables.entries()) {
      await scene.tamper(`delete from ${table}`);
      await scene.tamper(`insert into ${table} overriding system value select * from public.backup_${n}`);
    }
  };
}

/** The artifact of the newest checkpoint, as a backup has it. */
let saved: { readonly reference: ArtifactReference; readonly bytes: Uint8Array };

async function savedOf(indexer: Indexer): Promise<typeof saved> {
  const reference = await scene.checkpoint(indexer);
  const got = await journalArtifacts(scene.journal.runtime).get(reference);
  if (got.kind !== 'found') throw new Error(got.kind);
  return { reference, bytes: got.artifact.bytes };
}

async function buildIdOf(indexer: Indexer) {
  const [live] = await indexer.builds();
  if (live === undefined) throw new Error('no build');
  return live.build;
}

async function artifact(verb: string, change: string): Promise<void> {
  await scene.tamper(`${verb} retl.artifact ${change} where reference = $1`, [hashBytes(saved.reference)]);
}

async function restoredArtifact(): Promise<void> {
  await scene.tamper(
    `insert into retl.artifact (reference, type, bytes) values ($1, $2, $3)
     on conflict (reference) do update set bytes = excluded.bytes`,
    [hashBytes(saved.reference), CHECKPOINT_ARTIFACT, saved.bytes],
  );
}

/** Has index and registry name another artifact in the newest checkpoint's place. */
async function replaceCheckpoint(indexer: Indexer, change: (bytes: Uint8Array) => Uint8Array): Promise<void> {
  const bytes = change(Uint8Array.from(saved.bytes));
  const store = journalArtifacts(scene.journal.runtime);
  const put = await store.put({ type: CHECKPOINT_ARTIFACT, bytes });
  if (put.kind !== 'stored') throw new Error(put.kind);
  const { reference } = put;
  const build = await buildIdOf(indexer);
  await scene.tamper('update retl.checkpoint set reference = $1 where build_id = $2 and reference = $3', [
    hashBytes(reference),
    build,
    hashBytes(saved.reference),
  ]);
  await scene.tamper(`update ${SCHEMA}.index_build set reference = $1 where build_id = $2`, [
    reference,
    build,
  ]);
}

function elsewhere(bytes: Uint8Array): Uint8Array {
  const decoded = decodeCheckpoint(bytes);
  if (decoded.kind === 'refused') throw new Error(decoded.fault.reason);
  const { checkpoint } = decoded;
  const encoded = encodeCheckpoint({ ...checkpoint, aslLogPosition: checkpoint.aslLogPosition - 1n });
  if (encoded.kind === 'refused') throw new Error(encoded.fault.reason);
  return encoded.bytes;
}
