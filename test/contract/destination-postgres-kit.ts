/** A target database with a role that may do no more than it must, and writers, requests and a proxy to try it with. */

import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Client } from 'pg';
import { onTestFinished } from 'vitest';
import type {
  Action,
  BatchRequest,
  MappedFields,
  Writer,
  WriterContext,
} from '../../src/destinations/port.ts';
import { type PostgresConnection, postgresDestination } from '../../src/destinations/postgres/index.ts';
import { canonicalJson } from '../../src/domain/canonical-json.ts';
import { epoch, sha256FromHex } from '../../src/domain/ids.ts';
import { buildBody } from '../../src/domain/request.ts';
import type { SourceValue } from '../../src/domain/source-row.ts';
import { createTestDatabase } from '../support/postgres.ts';

type Json = { readonly [key: string]: SourceValue };

export interface Target {
  /** Superuser, for what the tests arrange and look at. */
  readonly admin: Client;
  /** Quoted name of the role that the adapter uses. */
  readonly role: string;
  readonly url: URL;
  connection(port?: number, more?: object): PostgresConnection;
  /** A writer with the fence taken, unless `init: false`. */
  open(options: object, more?: WriterOptions): Promise<Writer>;
  /** Rows of a query as the superuser sees them. */
  rows(query: string): Promise<readonly Record<string, unknown>[]>;
}

interface WriterOptions {
  readonly epoch?: number;
  readonly owner?: string;
  readonly formerOwners?: readonly string[];
  readonly run?: string;
  readonly fields?: readonly MappedFields[];
  readonly signal?: AbortSignal;
  readonly port?: number;
  readonly init?: false;
  readonly connection?: object;
  readonly now?: () => number;
}

export async function createTarget(setup: string): Promise<Target> {
  const database = await createTestDatabase();
  const role = `mirror_${randomBytes(6).toString('hex')}`;
  const admin = new Client({ connectionString: database.url });
  admin.on('error', () => undefined);
  await admin.connect();
  await admin.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'pass word%'; GRANT USAGE, CREATE ON SCHEMA public TO ${role}`,
  );
  await admin.query(setup.replaceAll(':role', role));
  onTestFinished(async () => {
    await admin.query(`DROP OWNED BY ${role} CASCADE`);
    await admin.end();
    await database.drop();
    const cleaner = new Client({ connectionString: database.adminUrl });
    await cleaner.connect();
    await cleaner.query(`DROP ROLE ${role}`);
    await cleaner.end();
  });
  const url = new URL(database.url);
  const connection = (port?: number, more: object = {}): PostgresConnection =>
    postgresDestination.connectionSchema.parse({
      host: url.hostname,
      port: port ?? Number(url.port),
      database: url.pathname.slice(1),
      user: role,
      password: 'pass word%',
      ...more,
    });
  return {
    admin,
    role,
    url,
    connection,
    rows: async (query) => (await admin.query(query)).rows,
    open: async (options, more = {}) => {
      const writer = await postgresDestination.open(
        connection(more.port, more.connection),
        postgresDestination.optionsSchema.parse(options),
        contextOf(more),
      );
      onTestFinished(() => writer.close());
      if (more.init !== false) {
        const outcome = await writer.init();
        if (outcome.kind !== 'accepted') throw new Error(`init: ${JSON.stringify(outcome)}`);
      }
      return writer;
    },
  };
}

function contextOf(options: WriterOptions): WriterContext {
  const values = new Map<string, string>();
  return {
    signal: options.signal ?? new AbortController().signal,
    logger: { info: () => undefined, warn: () => undefined },
    store: {
      get: (key) => values.get(key),
      set: (key, value) => void values.set(key, value),
      delete: (key) => void values.delete(key),
    },
    epoch: epoch(options.epoch ?? 1),
    owner: options.owner ?? 'log-1/vip',
    formerOwners: options.formerOwners ?? [],
    run: options.run ?? '1',
    ...(options.fields === undefined ? {} : { fields: options.fields }),
    progress: async () => undefined,
    now: options.now ?? (() => 0),
  };
}

const hash = (text: string) => sha256FromHex(createHash('sha256').update(text).digest('hex'));

/** A request whose members are identified by the named fields. */
export function request(action: Action, identity: readonly string[], members: readonly Json[]): BatchRequest {
  const operations = members.map((member, index) => {
    const key: Json = Object.fromEntries(identity.map((field) => [field, member[field] ?? null]));
    return {
      id: hash(`${index}`),
      identity: canonicalJson(key),
      payload: canonicalJson(action === 'upsert' ? member : key),
    };
  });
  const frame = postgresDestination.frame(action, postgresDestination.optionsSchema.parse({ table: 't' }));
  return {
    batchId: hash('batch'),
    action,
    idempotencyKey: 'key',
    operations,
    body: buildBody(frame, operations),
  };
}

export const upsert = (members: readonly Json[], identity: readonly string[] = ['id']): BatchRequest =>
  request('upsert', identity, members);
export const remove = (members: readonly Json[], identity: readonly string[] = ['id']): BatchRequest =>
  request('remove', identity, members);

export type Cut =
  | 'none'
  /** The connection ends as the client begins a transaction. */
  | 'before-begin'
  /** When the client sends COMMIT: nothing of it reaches the server. */
  | 'before-commit'
  /** The server gets COMMIT and answers; the answer is lost with the connection. */
  | 'after-commit'
  /** The server gets COMMIT; its answer never comes, and the connection stays. */
  | 'silent-commit';

/** A proxy in front of the server that does this once, on one connection; others pass. */
export async function startProxy(server: URL): Promise<{ readonly port: number; cut: Cut }> {
  const sockets = new Set<Socket>();
  const state = { port: 0, cut: 'none' as Cut };
  const proxy = createServer((client) => {
    const upstream = connect(Number(server.port), server.hostname);
    let now: Cut = 'none';
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => [client, upstream].map((each) => each.destroy()));
    }
    client.on('data', (data) => {
      const word = state.cut === 'before-begin' ? 'BEGIN' : 'COMMIT\0';
      if (state.cut !== 'none' && data.includes(word)) {
        now = state.cut;
        state.cut = 'none';
      }
      if (now.startsWith('before')) client.destroy();
      else upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (now === 'after-commit') client.destroy();
      if (now === 'none') client.write(data);
    });
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  state.port = (proxy.address() as AddressInfo).port;
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return state;
}
