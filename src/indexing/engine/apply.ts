/**
 * A batch taken into a build (design.md section 7). First the builder says, by compare-and-set, that the build is its own and how far
 * rows may soon stand there: whoever held it before is refused from now on, and whoever finds the build later holds it to
 * the log. Then the rows, in whatever order; then the checkpoint, by compare-and-set on what was said first. Whoever dies in
 * between leaves rows that writing again does not change.
 */

import type { Applied, Batch, MakeMark } from '../indexer.ts';
import type { Engine } from './ask.ts';
import { type KeptBuild, writeAlias, writeBuild } from './build-state.ts';
import { writeRows } from './bulk.ts';
import { refresh } from './directory.ts';
import { sinceOf } from './lookup.ts';
import { foldEntries, heldWrites, writesOf } from './rows.ts';

/** @param holder this builder */
export async function applyBatch(
  engine: Engine,
  kept: KeptBuild,
  batch: Batch,
  mark: MakeMark | null,
  holder: string,
): Promise<Applied> {
  const held = await claim(engine, kept, batch, holder);
  if (held === null) return { kind: 'raced' };
  const rows = held.rows + (await take(engine, held.engineIndex, batch));
  // What a checkpoint of the live build says is there, readers find.
  if (held.state === 'live') await refresh(engine, held.engineIndex);
  const next: KeptBuild = {
    ...held,
    rows,
    loaded: batch.kind === 'members' ? batch.next : held.loaded,
    // The artifact is durable before the document that refers to it; where that fails, it is an orphan, and harmless.
    ...(mark === null ? {} : { mark: await mark(rows), previous: held.mark?.reference ?? null }),
  };
  const build = await writeBuild(engine, passed(next));
  return build === null ? { kind: 'raced' } : { kind: 'applied', build };
}

/** `null`: another builder has taken the build over, or has moved it on. */
async function claim(
  engine: Engine,
  kept: KeptBuild,
  batch: Batch,
  holder: string,
): Promise<KeptBuild | null> {
  const isOwn = kept.holder === holder;
  const last = batch.kind === 'entries' ? batch.entries.at(-1)?.entry : undefined;
  if (isOwn && last === undefined) return kept;
  const { ahead } = kept;
  // Another builder may have come further before it died.
  const isFurther = last !== undefined && (ahead === null || last.position > ahead.position);
  return writeBuild(engine, {
    ...kept,
    holder,
    epoch: isOwn ? kept.epoch : kept.epoch + 1,
    ahead: isFurther ? { position: last.position, entryHash: last.entryHash } : ahead,
  });
}

/** Rows that the checkpoint speaks of are no longer ahead of it. */
function passed(build: KeptBuild): KeptBuild {
  const { ahead, mark } = build;
  return ahead !== null && mark !== null && mark.position >= ahead.position
    ? { ...build, ahead: null }
    : build;
}

/** @returns by how many those who are held have become more */
export async function take(engine: Engine, engineIndex: string, batch: Batch): Promise<bigint> {
  const alias = writeAlias(engineIndex);
  switch (batch.kind) {
    case 'begin':
      return 0n;
    case 'members': {
      const writes = heldWrites(batch.targets);
      await writeRows(engine, alias, writes);
      return BigInt(writes.length);
    }
    case 'entries': {
      const page = foldEntries(batch.entries);
      const since = await sinceOf(engine, engineIndex, page.heldBefore);
      await writeRows(engine, alias, writesOf(page, since));
      return page.grown;
    }
  }
}
