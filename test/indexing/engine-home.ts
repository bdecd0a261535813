/** A search engine as the place of indexes: each has a prefix of its own there. */

import { randomBytes } from 'node:crypto';
import type { EngineName, Options } from '../../src/domain/settings.ts';
import type { Patience } from '../../src/indexing/engine/ask.ts';
import { type EngineForm, engineDefinition, MEMBERSHIP_SEARCH } from '../../src/indexing/engine/form.ts';
import { engineIndexer } from '../../src/indexing/engine/indexer.ts';
import { engineSearchReader } from '../../src/indexing/engine/reader.ts';
import type { Indexer } from '../../src/indexing/indexer.ts';
import type { SearchReader } from '../../src/indexing/reader.ts';
import type { IndexHome, IndexPlace, Version } from './home.ts';

export const QUICK: Patience = { tries: 4, firstMs: 20, longestMs: 100, budgetMs: 60_000 };

/** What is done to the engine behind the indexer's back, over plain HTTP. */
export class EnginePlace implements IndexPlace {
  readonly prefix = `t${randomBytes(4).toString('hex')}-`;
  readonly #indexers: Indexer[] = [];

  constructor(
    /** Of the engine itself. */
    readonly url: string,
    private readonly system: EngineName = 'opensearch',
    /** Where and how the indexers go instead. */
    private readonly options: Options = {},
  ) {}

  async indexer(name: string, version: Version | 'narrow' = 'now'): Promise<Indexer> {
    const indexer = await engineIndexer({
      name,
      system: this.system,
      form: formOf(version),
      options: this.#access(),
      holdsLog: false,
      patience: QUICK,
    });
    this.#indexers.push(indexer);
    return indexer;
  }

  reader(name: string): SearchReader {
    const definition = engineDefinition(name, MEMBERSHIP_SEARCH);
    return engineSearchReader({ definition, system: this.system, options: this.#access() });
  }

  #access(): Options {
    return { url: this.url, prefix: this.prefix, replicas: 0, ...this.options };
  }

  async shown(name: string): Promise<string> {
    const body = {
      size: 10_000,
      query: { match_all: {} },
      sort: [{ target_id: 'asc' }, { identity_hash: 'asc' }],
    };
    const { hits } = await this.json<Hits>('POST', `/${this.prefix}${name}/_search`, body);
    return hits.hits.map(({ _source }) => lineOf(_source)).join('');
  }

  async built(): Promise<number> {
    return (await this.engineIndexes()).length;
  }

  /** The engine's indexes of builds and comparisons. */
  async engineIndexes(): Promise<readonly string[]> {
    return Object.keys(await this.json<object>('GET', `/${this.prefix}*-v*`));
  }

  async damage(name: string, gone: string, later: string): Promise<void> {
    const alias = `${this.prefix}${name}`;
    const { hits } = await this.json<Hits>('POST', `/${alias}/_search`, { size: 10_000 });
    for (const { _id, _index, _source } of hits.hits) {
      if (_source.identity === gone) await this.json('DELETE', `/${_index}/_doc/${_id}`);
      if (_source.identity !== later) continue;
      const since = `${BigInt(_source.since) + 1n}`;
      await this.json('PUT', `/${_index}/_doc/${_id}`, { ..._source, since });
    }
    await this.json('POST', `/${alias}/_refresh`);
  }

  async close(): Promise<void> {
    await Promise.all(this.#indexers.map((indexer) => indexer.close()));
    for (const index of await this.engineIndexes()) await this.json('DELETE', `/${index}`);
  }

  /** @throws Error where the engine refuses */
  async json<T>(method: string, path: string, body?: object): Promise<T> {
    const given = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { 'content-type': 'application/json' };
    const reply = await fetch(this.url + path, { method, headers, ...given });
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`);
    return (await reply.json()) as T;
  }
}

interface Hits {
  readonly hits: {
    readonly hits: readonly { readonly _id: string; readonly _index: string; readonly _source: Shown }[];
  };
}

type Shown = Readonly<
  Record<
    | 'mirror'
    | 'identity'
    | 'since_at'
    | 'accepted_at'
    | 'run_id'
    | 'since'
    | 'position'
    | 'target_id'
    | 'identity_hash'
    | 'payload_hash',
    string
  >
>;

export function engineHome(url: () => string): IndexHome {
  return { open: async () => new EnginePlace(url()) };
}

/** `narrow`: an engine that takes less than what there is to write. */
function formOf(version: Version | 'narrow'): EngineForm {
  if (version === 'now') return MEMBERSHIP_SEARCH;
  if (version === 'narrow') {
    const { text: _, ...properties } = MEMBERSHIP_SEARCH.properties;
    return { ...MEMBERSHIP_SEARCH, properties };
  }
  const properties = { ...MEMBERSHIP_SEARCH.properties, extra: { type: 'keyword' } };
  const schemaVersion = MEMBERSHIP_SEARCH.schemaVersion + (version === 'next' ? 1 : 0);
  return { ...MEMBERSHIP_SEARCH, schemaVersion, properties };
}

function lineOf(row: Shown): string {
  const times = `${row.since} ${micros(row.since_at)} ${row.position} ${micros(row.accepted_at)}`;
  return `${row.target_id.padStart(8, '0')} ${row.identity_hash} ${row.payload_hash} ${row.identity} ${row.run_id} ${times}\n`;
}

function micros(at: string): bigint {
  const [, whole = '', part = ''] = /^(.*\.)(\d{6})Z$/.exec(at) ?? [];
  return BigInt(Date.parse(`${whole}000Z`)) * 1000n + BigInt(part);
}
