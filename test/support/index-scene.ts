/** A journal with a log, and indexes of it in the schema that the migrations make. */

import pg from 'pg';
import type { ArtifactReference } from '../../src/domain/ids.ts';
import type { Indexer } from '../../src/indexing/indexer.ts';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { postgresIndexer } from '../../src/indexing/postgres/indexer.ts';
import type { TableKind } from '../../src/indexing/postgres/kind.ts';
import { membershipSearch } from '../../src/indexing/postgres/search.ts';
import type { Followed, ReplayDeps } from '../../src/indexing/replay.ts';
import { follow } from '../../src/indexing/replay.ts';
import { journalArtifacts } from '../../src/journal/artifacts.ts';
import { prune } from '../../src/journal/runs.ts';
import { createTestJournal, type TestJournal } from './journal.ts';
import { ScriptedRun, type TestRow } from './journal-run.ts';
import { ReplayedIndex } from './log-replay.ts';

export const SCHEMA = 'retl_index';

export class IndexScene {
  readonly #indexers = new Set<Indexer>();
  /** What was heard of what does not stop the work. */
  readonly warnings: { readonly [field: string]: string }[] = [];

  private constructor(readonly journal: TestJournal) {}

  static async open(): Promise<IndexScene> {
    return new IndexScene(await createTestJournal());
  }

  async close(): Promise<void> {
    for (const indexer of this.#indexers) await indexer.close();
    await this.journal.close();
  }

  /** Closes an index's connections early. */
  async release(indexer: Indexer): Promise<void> {
    this.#indexers.delete(indexer);
    await indexer.close();
  }

  /** @param url of the index's database, where it is not the journal's */
  indexer(name: string, kind: TableKind = membershipSearch, options: IndexerOptions = {}): Indexer {
    const { url = this.journal.runtimeUrl, holdsLog = kind === membershipHistory } = options;
    const indexer = postgresIndexer({ name, kind, url, schema: SCHEMA, holdsLog });
    this.#indexers.add(indexer);
    return indexer;
  }

  deps(effects = 7): ReplayDeps {
    const journal = this.journal.runtime;
    return {
      journal,
      artifacts: journalArtifacts(journal),
      builder: 'tests',
      now: () => 1_700_000_000_000,
      warn: (message, fields) => this.warnings.push({ message, ...fields }),
      effects,
    };
  }

  follow(indexer: Indexer, effects = 7): Promise<Followed> {
    return follow(this.deps(effects), indexer);
  }

  async run(mirror: string, rows: readonly TestRow[], size = 5): Promise<void> {
    const run = await ScriptedRun.whole(this.journal.runtime, { mirror }, rows, size);
    await prune(this.journal.runtime, run.run, 100);
  }

  /** Adds, changes, removes and adds again, of each of the mirrors. */
  async history(mirrors: readonly string[] = ['a']): Promise<void> {
    for (const mirror of mirrors) {
      await this.run(mirror, rows(0, 30, '1'));
      await this.run(mirror, [...rows(0, 4, '2'), ...rows(4, 26, '1')]);
      await this.run(mirror, [...rows(0, 4, '2'), ...rows(8, 30, '3')], 9);
    }
  }

  /** What the view of a search index shows, in the words of {@link ReplayedIndex}. */
  async shown(name: string): Promise<string> {
    const { rows: found } = await this.journal.admin.query<{ line: string }>(
      `select lpad(target_id::text, 8, '0') || ' ' || encode(identity_hash, 'hex') || ' ' || encode(payload_hash, 'hex') || ' '
         || identity || ' ' || run_id || ' ' || since || ' ' || (extract(epoch from since_at) * 1000000)::bigint || ' '
         || position || ' ' || (extract(epoch from accepted_at) * 1000000)::bigint as line
       from ${SCHEMA}."${name}" order by target_id, identity_hash`,
    );
    return found.map(({ line }) => `${line}\n`).join('');
  }

  /** What the log says, without the payloads, which the index does not keep. */
  async expected(): Promise<string> {
    const dump = (await ReplayedIndex.replay(this.journal.runtime)).dump();
    return dump.replaceAll(/^((?:\S+ ){4})\S+ /gm, '$1');
  }

  /** As a superuser who switches triggers and constraints off. */
  async tamper(sql: string, values: readonly unknown[] = []): Promise<void> {
    const client = new pg.Client({ connectionString: this.journal.adminUrl });
    await client.connect();
    await client.query('begin');
    await client.query('set local session_replication_role = replica');
    await client.query(sql, [...values]);
    await client.query('commit');
    await client.end();
  }

  async checkpoint(indexer: Indexer): Promise<ArtifactReference> {
    const reference = (await indexer.builds()).at(-1)?.mark?.reference;
    if (reference === undefined) throw new Error('no checkpoint');
    return reference;
  }
}

interface IndexerOptions {
  readonly url?: string;
  readonly holdsLog?: boolean;
}

/** Members `from` to `to`, each with the same payload. */
export function rows(from: number, to: number, payload: string): readonly TestRow[] {
  return Array.from({ length: to - from }, (_, i) => {
    const id = `k${from + i}`;
    return { key: id, members: [{ id, payload }] };
  });
}

/** The same kind at another schema version; its rows have a column more. */
export function nextVersion(kind: TableKind): TableKind {
  const columns = `${kind.columns}, extra text`;
  const [schemaVersion, names, shown] = [
    kind.schemaVersion + 1,
    [...kind.names, 'extra'],
    `${kind.shown}, extra`,
  ];
  return { ...kind, schemaVersion, columns, names, shown };
}

/** Says stop once so many pages have been asked for. */
export function afterPages(pages: number): () => boolean {
  let asked = 0;
  return () => {
    asked += 1;
    return asked > pages;
  };
}
