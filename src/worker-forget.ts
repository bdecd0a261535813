/** Lets an index go that was taken out of retl.yaml, or is retired there: its builds where they live, and its hold on the log. */

import type { BaseSettings } from './config/load-base.ts';
import { inProjectFile, resolveReferences, resolveText, secretsOf } from './config/secrets.ts';
import type { IndexLine } from './domain/index-lines.ts';
import { forgetInEngine } from './indexing/engine/forget.ts';
import type { Forgotten } from './indexing/indexer.ts';
import { forgetTables } from './indexing/postgres/forget.ts';
import { compactionHolds, releaseCompaction } from './journal/compaction.ts';
import { logHead } from './journal/log.ts';
import type { JournalPool } from './journal/runs.ts';

export interface ForgetOrder {
  readonly projectDir: string;
  readonly retired: BaseSettings['retiredIndexes'];
  readonly journalUrl: string;
  /** Of the index. */
  readonly name: string;
  /** Of the journal's database, where retl.yaml does not say any more where the index lived. */
  readonly schema: string;
}

/** Its builds first: where that fails, the log is still held back for what is left. @throws RetlError, JournalError */
export async function forgotten(journal: JournalPool, order: ForgetOrder): Promise<IndexLine> {
  const { name: index } = order;
  const held = (await compactionHolds(journal)).find((hold) => hold.index === index)?.position ?? null;
  const { logId } = await logHead(journal);
  const { builds, foreign } = await drop(order, logId);
  await releaseCompaction(journal, index);
  return { kind: 'forgotten', index, builds, foreign, held };
}

async function drop(order: ForgetOrder, logId: string): Promise<Forgotten> {
  const { projectDir, retired, name, journalUrl } = order;
  const settings = retired.find((index) => index.name === name);
  const { env, readFile } = secretsOf(projectDir);
  const engine = settings?.engine ?? null;
  if (engine !== null) {
    const { system } = engine;
    const options = resolveReferences(engine.options, env, readFile, inProjectFile(`indexes.${name}`));
    return forgetInEngine({ name, system, options, logId });
  }
  const schema = settings?.schema ?? order.schema;
  const elsewhere = settings?.url ?? null;
  if (elsewhere === null) return forgetTables({ name, url: journalUrl, schema, logId: null });
  const url = resolveText(elsewhere, env, readFile, inProjectFile(`indexes.${name}.url`));
  return forgetTables({ name, url, schema, logId });
}
