/**
 * How fast an index in a search engine replays the log, beside the engine's own bulk interface: the same documents, ready in
 * memory as whole requests, sent by Node's plain client, into an index of the same mapping, on the same node.
 */

import { randomBytes } from 'node:crypto';
import { logPosition } from '../src/domain/ids.ts';
import { createBody, MEMBERSHIP_SEARCH } from '../src/indexing/engine/form.ts';
import { engineIndexer } from '../src/indexing/engine/indexer.ts';
import { foldEntries, writesOf } from '../src/indexing/engine/rows.ts';
import { LogSource } from '../src/indexing/log-source.ts';
import { follow } from '../src/indexing/replay.ts';
import { journalArtifacts } from '../src/journal/artifacts.ts';
import { openJournal } from '../src/journal/pool.ts';
import { startOpenSearch } from '../test/support/opensearch/server.ts';

export interface EngineMeasured {
  /** Documents that the log comes to. */
  readonly documents: number;
  readonly bulkSeconds: number;
  readonly replaySeconds: number;
}

const JAVA = ['-Xms2g', '-Xmx2g', '-XX:+UseG1GC'];
const WARM_UP = 20;
const IN_FLIGHT = 2;
const REQUEST_ROWS = 5_000;
const SHAPE = { shards: 1, replicas: 0 };

/** Medians of so many tries, each of the one and the other in turn. @param journalUrl of a journal whose log is replayed whole */
export async function measureEngine(journalUrl: string, tries: number): Promise<EngineMeasured> {
  const journal = openJournal({ url: journalUrl, max: 4 });
  const server = await startOpenSearch(JAVA);
  try {
    const { requests, documents } = await requestsOf(new LogSource(journal));
    // The engine's machine translates its own code while it works.
    await bulk(server.url, requests.slice(0, WARM_UP));
    const bulks: number[] = [];
    const replays: number[] = [];
    for (let n = 0; n < tries; n += 1) {
      bulks.push(await bulk(server.url, requests));
      replays.push(await replay(server.url, journal, n));
    }
    return { documents, bulkSeconds: median(bulks), replaySeconds: median(replays) };
  } finally {
    await server.stop();
    await journal.end();
  }
}

function median(seconds: readonly number[]): number {
  return [...seconds].sort((a, b) => a - b)[Math.floor(seconds.length / 2)] ?? 0;
}

/** All that replaying the log writes, as bodies of bulk requests. */
async function requestsOf(source: LogSource) {
  const requests: Buffer[] = [];
  let documents = 0;
  let page = await source.entries(logPosition(0), null);
  while (page.kind === 'entries') {
    const writes = writesOf(foldEntries(page.entries), new Map());
    documents += writes.length;
    for (let from = 0; from < writes.length; from += REQUEST_ROWS) {
      const lines = writes.slice(from, from + REQUEST_ROWS).map(({ id, version, document }) => {
        const action = `{"index":{"_id":"${id}","version":${version},"version_type":"external"}}`;
        return `${action}\n${document}\n`;
      });
      requests.push(Buffer.from(lines.join('')));
    }
    page = await source.entries(page.entries.at(-1)?.entry.position ?? logPosition(0), null);
  }
  return { requests, documents };
}

interface BulkReply {
  readonly items: readonly { readonly index: { readonly status: number } }[];
}

async function bulk(url: string, requests: readonly Buffer[]): Promise<number> {
  const index = `bulk-${randomBytes(4).toString('hex')}`;
  const meta = { index: 'bulk', build: 1n, logId: '', scratch: false };
  await call(url, 'PUT', `/${index}`, createBody(MEMBERSHIP_SEARCH, SHAPE, meta, `${index}-w`));
  const start = performance.now();
  const left = [...requests].reverse();
  const worker = async (): Promise<void> => {
    for (let body = left.pop(); body !== undefined; body = left.pop()) {
      const path = `/${index}/_bulk?filter_path=errors,items.*.status`;
      const { items } = (await call(url, 'POST', path, body)) as BulkReply;
      // Of two requests on their way the later one may be first: what it has written stays.
      const isTaken = (status: number) => status < 300 || status === 409;
      if (!items.every(({ index: { status } }) => isTaken(status)))
        throw new Error('the engine refuses documents');
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  await call(url, 'POST', `/${index}/_refresh`);
  const seconds = (performance.now() - start) / 1000;
  await call(url, 'DELETE', `/${index}`);
  return seconds;
}

async function replay(url: string, journal: ReturnType<typeof openJournal>, n: number): Promise<number> {
  const indexer = await engineIndexer({
    name: `bench-${n}`,
    system: 'opensearch',
    form: MEMBERSHIP_SEARCH,
    options: { url, replicas: 0 },
    holdsLog: false,
  });
  const artifacts = journalArtifacts(journal);
  const deps = { journal, artifacts, builder: 'bench', now: () => Date.now(), warn: console.warn };
  const start = performance.now();
  const { kind } = await follow(deps, indexer);
  const seconds = (performance.now() - start) / 1000;
  await indexer.close();
  if (kind !== 'caught-up') throw new Error(`the index ended as ${kind}`);
  return seconds;
}

async function call(url: string, method: string, path: string, body?: string | Buffer): Promise<unknown> {
  const headers = { 'content-type': path.includes('_bulk') ? 'application/x-ndjson' : 'application/json' };
  const given = body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) };
  for (;;) {
    const reply = await fetch(url + path, { method, headers, ...given });
    if (reply.ok) return reply.json();
    if (reply.status !== 429) throw new Error(`${method} ${path.split('/').at(-1)}: HTTP ${reply.status}`);
    await reply.text();
    await new Promise((wake) => setTimeout(wake, 100));
  }
}
