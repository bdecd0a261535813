/**
 * The demo's audience API: a small, real HTTP service in its own process, which keeps audiences of members and forgets
 * nothing when it is restarted. `audience-api --port 0 --data <file> [--delay-ms n]` prints `{"url": …}` when it listens
 * and ends on SIGTERM. Requests are logged nowhere.
 *
 *     POST   /audiences/:id/members    [member, …]    adds or replaces each by its id  → {"results": [{"id", "status"}]}
 *     DELETE /audiences/:id/members    [identity, …]  removes each, gone or not        → the same
 *     GET    /audiences/:id/members    ?after=<id>&limit=<n>                           → {"members": […], "next"}
 *     GET    /audiences/:id                                                            → {"id", "members": <count>}
 *
 * A member's id is its `email_sha256`. The same `Idempotency-Key` gives the same reply and changes nothing a second time.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { AudienceStore } from './audience-store.ts';

const MAX_BODY_BYTES = 8 * 1024 * 1024;

const MembersBody = z.array(z.unknown());
const Member = z.looseObject({ email_sha256: z.string().regex(/^[0-9a-f]{64}$/) });
const Page = z.object({ after: z.string().default(''), limit: z.coerce.number().int().min(1).optional() });

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

interface Call {
  readonly method: string;
  readonly url: URL;
  readonly body: string;
  readonly key: string | undefined;
}

class TooLarge extends Error {}

function answer(store: AudienceStore, call: Call): Reply {
  const [, audience, members] = /^\/audiences\/([^/]{1,100})(\/members)?$/.exec(call.url.pathname) ?? [];
  if (audience === undefined) return failure(404, 'no such path');
  if (call.method === 'GET')
    return members === undefined
      ? { status: 200, body: { id: audience, members: store.count(audience) } }
      : page(store, audience, call.url);
  if (members === undefined || (call.method !== 'POST' && call.method !== 'DELETE'))
    return failure(405, 'no such method here');
  const rows = rowsIn(call.body);
  if (rows === null) return failure(400, 'the body must be a JSON array');
  const known = call.key === undefined ? undefined : store.replyTo(call.key);
  if (known !== undefined) return { status: 200, body: known };
  const body = { results: rows.map((row) => change(store, audience, call.method, row)) };
  if (call.key !== undefined) store.remember(call.key, body);
  return { status: 200, body };
}

function failure(status: number, error: string): Reply {
  return { status, body: { error } };
}

function rowsIn(body: string): readonly unknown[] | null {
  try {
    return MembersBody.parse(JSON.parse(body));
  } catch {
    return null;
  }
}

function change(store: AudienceStore, audience: string, method: string, row: unknown): unknown {
  const member = Member.safeParse(row);
  if (!member.success)
    return { id: claimedId(row), status: 'invalid', reason: 'email_sha256 must be 64 lower-case hex digits' };
  const id = member.data.email_sha256;
  if (method === 'POST') store.put(audience, id, member.data);
  else store.remove(audience, id);
  return { id, status: 'ok' };
}

/** A row that is turned down is named by whatever id it came with, so that its sender can tell which it was. */
function claimedId(row: unknown): unknown {
  return typeof row === 'object' && row !== null && 'email_sha256' in row ? row.email_sha256 : null;
}

function page(store: AudienceStore, audience: string, url: URL): Reply {
  const query = Page.safeParse(Object.fromEntries(url.searchParams));
  if (!query.success) return failure(400, '`limit` must be a whole number from 1');
  const { after, limit } = query.data;
  const all = store.members(audience).filter(([id]) => id > after);
  const listed = limit === undefined ? all : all.slice(0, limit);
  const next = listed.length < all.length ? (listed.at(-1)?.[0] ?? null) : null;
  return { status: 200, body: { members: listed.map(([, member]) => member), next } };
}

async function serve(store: AudienceStore, incoming: IncomingMessage, delayMs: number): Promise<Reply> {
  const { 'idempotency-key': key } = incoming.headers;
  const call = {
    method: incoming.method ?? '',
    url: new URL(incoming.url ?? '/', 'http://localhost'),
    body: await bodyOf(incoming),
    key: typeof key === 'string' ? key : undefined,
  };
  if (delayMs > 0 && call.method !== 'GET') await new Promise((resolve) => setTimeout(resolve, delayMs));
  const reply = answer(store, call);
  // What is on disk is what was promised.
  await store.saved();
  return reply;
}

async function bodyOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_BODY_BYTES) throw new TooLarge();
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function send(outgoing: ServerResponse, { status, body }: Reply): void {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '0' },
      data: { type: 'string' },
      'delay-ms': { type: 'string', default: '0' },
    },
  });
  if (values.data === undefined) throw new Error('--data names the file that keeps the audiences');
  const store = await AudienceStore.open(values.data);
  const delayMs = Number(values['delay-ms']);
  const server = createServer((incoming, outgoing) => {
    serve(store, incoming, delayMs).then(
      (reply) => send(outgoing, reply),
      (error: unknown) =>
        send(outgoing, error instanceof TooLarge ? failure(413, 'too large') : failure(500, 'not saved')),
    );
  });
  process.once('SIGTERM', () => server.close());
  process.once('SIGINT', () => server.close());
  server.once('close', () => process.exit(0));
  server.listen(Number(values.port), '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
  });
}

await main();
