/** An object store with a proxy that loses, withholds or replaces its answers, and writers to try it with. */

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import type {
  AcceptedUpload,
  BatchRequest,
  FinishRequest,
  Writer,
  WriterContext,
} from '../../src/destinations/port.ts';
import { type S3Connection, s3Destination } from '../../src/destinations/s3/index.ts';
import { canonicalJson } from '../../src/domain/canonical-json.ts';
import { epoch, sha256FromHex } from '../../src/domain/ids.ts';
import { buildBody } from '../../src/domain/request.ts';
import { type S3Keys, type S3Server, startS3Server } from '../support/s3-server.ts';

export type StoreFault =
  | 'none'
  /** The store gets the request and answers; the answer is lost with the connection. */
  | 'answer-lost'
  /** The store gets the request; nothing ever comes back. */
  | 'silent'
  /** The connection ends before the store has got anything; the client cannot know that. */
  | 'request-lost'
  /** The store says that it did nothing, and when to come again. */
  | 'slow-down'
  /** A proxy's own 502: nobody knows. */
  | 'bad-gateway';

type Matcher = (request: IncomingMessage, body: string) => boolean;

export interface StoreProxy {
  readonly port: number;
  /** Arms the next request that matches. */
  arm(fault: StoreFault, matches?: Matcher): void;
  /** Statuses of the store's own answers, in the order of their arrival. */
  readonly statuses: readonly number[];
  /** Called before a request that matches is passed on, once. */
  before(matches: Matcher, work: () => Promise<void>): void;
  close(): Promise<void>;
}

export const isPut = (request: IncomingMessage): boolean => request.method === 'PUT';
export const isManifestPut = (request: IncomingMessage): boolean =>
  isPut(request) && (request.url ?? '').includes('/manifest.json');

/** Of a first run, whose manifest has no parts before. */
export const isPublishing: Matcher = (request, body) => isManifestPut(request) && body.includes('"parts"');

const SLOW_DOWN =
  '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>';

export async function startStoreProxy(port: number): Promise<StoreProxy> {
  const state = { fault: 'none' as StoreFault, matches: isPut as Matcher, statuses: [] as number[] };
  let hook: { matches: Matcher; work: () => Promise<void> } | null = null;
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (hook?.matches(request, String(body)) === true) {
      const { work } = hook;
      hook = null;
      await work();
    }
    const fault = state.fault !== 'none' && state.matches(request, String(body)) ? state.fault : 'none';
    if (fault !== 'none') state.fault = 'none';
    if (fault === 'request-lost') return void response.destroy();
    if (fault === 'slow-down') {
      response.writeHead(503, { 'retry-after': '7', 'content-type': 'application/xml' });
      return void response.end(SLOW_DOWN);
    }
    if (fault === 'bad-gateway') return void response.writeHead(502).end('bad gateway');
    const { method, url: path, headers } = request;
    const upstream = httpRequest({ host: '127.0.0.1', port, method, path, headers });
    upstream.end(body);
    const [answer] = (await once(upstream, 'response')) as [IncomingMessage];
    state.statuses.push(answer.statusCode ?? 0);
    if (fault === 'silent') return;
    if (fault === 'answer-lost') {
      answer.resume();
      await once(answer, 'end');
      return void response.destroy();
    }
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(response);
  };
  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    statuses: state.statuses,
    arm: (fault, matches = isPut) => {
      state.fault = fault;
      state.matches = matches;
    },
    before: (matches, work) => {
      hook = { matches, work };
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

export interface Store {
  readonly server: S3Server;
  readonly proxy: StoreProxy;
  /** The store's own client, for what the tests arrange and look at. */
  readonly admin: S3Client;
  connection(more?: object, keys?: S3Keys): S3Connection;
  newBucket(): Promise<string>;
  keys(bucket: string): Promise<readonly string[]>;
  put(bucket: string, key: string, body: string): Promise<void>;
  drop(bucket: string, key: string): Promise<void>;
  text(bucket: string, key: string): Promise<string | null>;
  /** Members as a reader finds them who follows the manifest, checksums included; `null`: nothing published. */
  read(bucket: string, prefix?: string): Promise<readonly string[] | null>;
}

export interface OpenStore extends Store {
  close(): Promise<void>;
}

/** A store with its proxy; whoever starts it closes it. */
export async function startStore(): Promise<OpenStore> {
  const server = await startS3Server();
  const proxy = await startStoreProxy(server.port);
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = server.admin;
  const admin = new S3Client({
    endpoint: server.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
  });
  let buckets = 0;
  return {
    server,
    proxy,
    admin,
    connection: (more = {}, keys = server.writer) =>
      s3Destination.connectionSchema.parse({ endpoint: `http://127.0.0.1:${proxy.port}`, ...keys, ...more }),
    newBucket: async () => {
      buckets += 1;
      const bucket = `bucket-${buckets}`;
      await admin.send(new CreateBucketCommand({ Bucket: bucket }));
      return bucket;
    },
    keys: async (bucket) => {
      const { Contents = [] } = await admin.send(new ListObjectsV2Command({ Bucket: bucket }));
      return Contents.map(({ Key }) => Key ?? '').sort();
    },
    put: async (bucket, key, body) => {
      await admin.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
    },
    drop: async (bucket, key) => {
      await admin.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
    },
    text: async (bucket, key) => (await bytesOf(admin, bucket, key))?.toString('utf8') ?? null,
    read: (bucket, prefix = '') => publishedSet(admin, bucket, prefix),
    close: async () => {
      admin.destroy();
      await proxy.close();
      await server.stop();
    },
  };
}

async function bytesOf(admin: S3Client, bucket: string, key: string): Promise<Buffer | null> {
  try {
    const { Body } = await admin.send(new GetObjectCommand({ Bucket: bucket, Key: key }));
    return Buffer.from((await Body?.transformToByteArray()) ?? []);
  } catch (error) {
    if (error instanceof Error && error.name === 'NoSuchKey') return null;
    throw error;
  }
}

async function publishedSet(
  admin: S3Client,
  bucket: string,
  prefix: string,
): Promise<readonly string[] | null> {
  const manifest = await bytesOf(admin, bucket, `${prefix}manifest.json`);
  const published = manifest === null ? null : JSON.parse(manifest.toString('utf8')).published;
  if (published === null) return null;
  const lines: string[] = [];
  for (const part of published.parts) {
    const stored = (await bytesOf(admin, bucket, part.key)) ?? Buffer.from('gone');
    const sum = `sha256:${createHash('sha256').update(stored).digest('hex')}`;
    if (sum !== part.sha256 || stored.length !== part.bytes) throw new Error('a part is not as named');
    const plain = published.compression === 'gzip' ? gunzipSync(stored) : stored;
    const own = plain.toString('utf8').split('\n').slice(0, -1);
    if (own.length !== part.members) throw new Error('a part has other members than named');
    lines.push(...own);
  }
  if (lines.length !== published.members) throw new Error('the parts are not the set');
  return lines.sort();
}

/** One store and one proxy for a test file. */
export function useStore(): Store {
  let open: OpenStore | null = null;
  const now = (): Store => {
    if (open === null) throw new Error('the store is not up yet');
    return open;
  };
  beforeAll(async () => {
    open = await startStore();
  });
  afterAll(() => open?.close());
  return {
    get server() {
      return now().server;
    },
    get proxy() {
      return now().proxy;
    },
    get admin() {
      return now().admin;
    },
    connection: (...given) => now().connection(...given),
    newBucket: () => now().newBucket(),
    keys: (bucket) => now().keys(bucket),
    put: (...given) => now().put(...given),
    drop: (...given) => now().drop(...given),
    text: (...given) => now().text(...given),
    read: (...given) => now().read(...given),
  };
}

const hash = (text: string) => sha256FromHex(createHash('sha256').update(text).digest('hex'));

/** A request of members `{"id": …}`; its id follows from them. */
export function upload(ids: readonly string[], note = 'x'): BatchRequest {
  const operations = ids.map((id) => ({
    id: hash(`operation ${id}`),
    identity: canonicalJson({ id }),
    payload: canonicalJson({ id, note }),
  }));
  const frame = s3Destination.frame('upsert', s3Destination.optionsSchema.parse({ bucket: 'any' }));
  const batchId = hash(JSON.stringify([ids, note]));
  return {
    batchId,
    action: 'upsert',
    idempotencyKey: batchId,
    operations,
    body: buildBody(frame, operations),
  };
}

/** The lines of such members, as a reader finds them. */
export const lines = (ids: readonly string[], note = 'x'): readonly string[] =>
  ids.map((id) => canonicalJson({ id, note })).sort();

export interface AttemptOptions {
  readonly run?: string;
  readonly epoch?: number;
  readonly owner?: string;
  readonly formerOwners?: readonly string[];
  readonly signal?: AbortSignal;
  readonly now?: () => number;
}

/** A writer that the test closes; no session is opened. */
export async function writerOf(
  connection: S3Connection,
  options: object,
  attempt: AttemptOptions = {},
): Promise<Writer> {
  const context: WriterContext = {
    signal: attempt.signal ?? new AbortController().signal,
    logger: { info: () => undefined, warn: () => undefined },
    store: { get: () => undefined, set: () => undefined, delete: () => undefined },
    epoch: epoch(attempt.epoch ?? 1),
    owner: attempt.owner ?? 'log-1/vip',
    formerOwners: attempt.formerOwners ?? [],
    run: attempt.run ?? '1',
    progress: async () => undefined,
    now: attempt.now ?? (() => Date.now()),
  };
  const writer = await s3Destination.open(connection, s3Destination.optionsSchema.parse(options), context);
  onTestFinished(() => writer.close());
  return writer;
}

/** Uploads the requests and gives back what the core would keep of them. @throws unless all are accepted */
export async function uploadAll(
  writer: Writer,
  requests: readonly BatchRequest[],
): Promise<readonly AcceptedUpload[]> {
  const accepted: AcceptedUpload[] = [];
  for (const request of requests) {
    const outcome = await writer.upsert(request);
    if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome));
    accepted.push({ batchId: request.batchId, members: request.operations.length, receipt: outcome.receipt });
  }
  return accepted;
}

export function finishOf(run: string, uploads: readonly AcceptedUpload[], members?: number): FinishRequest {
  const batchId = hash(`finish of ${run}`);
  return {
    batchId,
    idempotencyKey: batchId,
    generation: run,
    members: members ?? uploads.reduce((sum, one) => sum + one.members, 0),
    digest: hash(`digest of ${run}`),
    uploads: async function* () {
      yield* uploads;
    },
  };
}

/** A whole run of one attempt. @throws unless it is accepted */
export async function replaceWith(
  connection: S3Connection,
  options: object,
  attempt: { readonly run: string; readonly epoch: number } & AttemptOptions,
  requests: readonly BatchRequest[],
): Promise<Writer> {
  const writer = await writerOf(connection, options, attempt);
  const opened = await writer.init();
  if (opened.kind !== 'accepted') throw new Error(JSON.stringify(opened));
  const done = await writer.finish(finishOf(attempt.run, await uploadAll(writer, requests)));
  if (done.kind !== 'accepted') throw new Error(JSON.stringify(done));
  return writer;
}
