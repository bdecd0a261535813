/**
 * A server before a real OpenSearch that can be rude, and that can speak as Elasticsearch does: it names the product and translates
 * the media types of Elasticsearch's clients, and passes everything else on as it is. What Elasticsearch itself would do
 * beyond that is not shown by it.
 */

import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { LOCALHOST_CERTIFICATE, LOCALHOST_KEY } from '../localhost-certificate.ts';

export interface Passing {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Where and how it came: a header of it, empty where it has none. */
  header(name: string): string;
  readonly body: string;
}

export interface Passed {
  readonly status: number;
  readonly body: string;
}

export interface FrontKnobs {
  /** Answers in the engine's place; `null`: it is passed on. */
  instead?(request: Passing): Promise<Passed | null> | Passed | null;
  /** The request that reaches the engine in the place of the one that came. */
  reaching?(request: Passing): string;
  /**
   * The answer that the client gets. The engine has done the work; `cut`: the connection is closed instead of an answer,
   * `torn`: in the middle of it.
   */
  answering?(request: Passing, answer: Passed): Passed | Lost | Promise<Passed | Lost>;
}

export type Lost = 'cut' | 'torn';

export interface Front {
  readonly url: string;
  knobs: FrontKnobs;
  close(): Promise<void>;
}

export interface FrontOptions {
  readonly elastic?: boolean;
  readonly tls?: boolean;
}

const COMPATIBLE = /application\/vnd\.elasticsearch\+(json|x-ndjson)(; *compatible-with=\d+)?/g;

export async function startFront(to: string, options: FrontOptions = {}): Promise<Front> {
  const front: { knobs: FrontKnobs } = { knobs: {} };
  const answer: RequestListener = (request, response) => {
    void pass(to, request, front.knobs, options).then(
      (passed) => {
        if (passed === 'cut') request.socket.destroy();
        else if (passed === 'torn') tear(response, options);
        else say(response, passed, options);
      },
      () => request.socket.destroy(),
    );
  };
  const server = options.tls
    ? createSecureServer({ cert: LOCALHOST_CERTIFICATE, key: LOCALHOST_KEY }, answer)
    : createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return Object.assign(front, {
    url: options.tls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}

async function pass(
  to: string,
  request: IncomingMessage,
  knobs: FrontKnobs,
  { elastic = false }: FrontOptions,
): Promise<Passed | Lost> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const { pathname, search } = new URL(request.url ?? '/', to);
  const passing: Passing = {
    method: request.method ?? 'GET',
    path: pathname,
    header: (name) => String(request.headers[name] ?? ''),
    body: Buffer.concat(chunks).toString('utf8'),
  };
  const instead = await knobs.instead?.(passing);
  if (instead) return instead;
  const body = knobs.reaching?.(passing) ?? passing.body;
  const given = passing.header('content-type') || 'application/json';
  const type = elastic ? given.replaceAll(COMPATIBLE, 'application/$1') : given;
  const reply = await fetch(to + pathname + search, {
    method: passing.method,
    headers: { 'content-type': type },
    ...(body === '' ? {} : { body }),
  });
  const answer = { status: reply.status, body: await reply.text() };
  return (await knobs.answering?.(passing, answer)) ?? answer;
}

function say(response: ServerResponse, { status, body }: Passed, options: FrontOptions): void {
  response.writeHead(status, headersOf(options));
  response.end(body);
}

function tear(response: ServerResponse, options: FrontOptions): void {
  response.writeHead(200, { ...headersOf(options), 'content-length': 1_000 });
  response.write('{"errors":false,"items":[{"index":{"sta', () => response.socket?.destroy());
}

function headersOf({ elastic = false }: FrontOptions): { readonly [name: string]: string } {
  if (!elastic) return { 'content-type': 'application/json' };
  const type = 'application/vnd.elasticsearch+json;compatible-with=8';
  return { 'content-type': type, 'x-elastic-product': 'Elasticsearch' };
}

const REFUSED = { index: { status: 429, error: { type: 'rejected_execution_exception' } } };

/** Refuses every document of a bulk request for the moment. */
export function allBusy({ path, body }: Passing): Passed | null {
  if (!path.endsWith('/_bulk')) return null;
  const items = Array.from({ length: (body.split('\n').length - 1) / 2 }, () => REFUSED);
  return { status: 200, body: JSON.stringify({ errors: true, items }) };
}

/** Has every second document of each bulk request refused for the moment, without its reaching the engine, until `times` are over. */
export function busyItems(times: number): FrontKnobs {
  let left = times;
  const isBusy = ({ path }: Passing) => path.endsWith('/_bulk') && left > 0;
  const pairs = (body: string) => {
    const lines = body.split('\n');
    return Array.from({ length: (lines.length - 1) / 2 }, (_, n) => `${lines[2 * n]}\n${lines[2 * n + 1]}\n`);
  };
  return {
    reaching: (request) =>
      isBusy(request)
        ? pairs(request.body)
            .filter((_, n) => n % 2 === 0)
            .join('')
        : request.body,
    answering(request, answer) {
      if (!isBusy(request)) return answer;
      left -= 1;
      const taken: readonly object[] = JSON.parse(answer.body).items;
      const items = pairs(request.body).map((_, n) => (n % 2 === 0 ? taken[n / 2] : REFUSED));
      return { status: 200, body: JSON.stringify({ errors: true, items }) };
    },
  };
}
