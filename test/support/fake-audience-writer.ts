/** An `http` writer on a fake audience API, with members and requests to send. */

import { conformanceContext, conformanceRequest } from '../../src/destinations/conformance-session.ts';
import { httpDestination } from '../../src/destinations/http/index.ts';
import type { Action, BatchRequest, Writer, WriterContext } from '../../src/destinations/port.ts';
import type { JsonObject, Member } from '../../src/domain/member.ts';

export const PATH = '/audiences/42/members';

/** Rows of the fake's replies, matched by the identity. */
export const PER_ROW = {
  per_row: {
    list: '/results',
    id: 'id',
    match: 'email_sha256',
    ok: { field: 'status', values: ['ok'] },
    reason: 'reason',
  },
};

export interface Written {
  /** As in `retl.yaml`, `base_url` left out. */
  readonly connection?: object;
  /** As in a mirror's `destination:`, upsert and remove left out. */
  readonly options?: object;
  readonly context?: Partial<WriterContext>;
}

export function parsed(url: string, { connection = {}, options = {} }: Written) {
  return {
    connection: httpDestination.connectionSchema.parse({ base_url: url, ...connection }),
    options: httpDestination.optionsSchema.parse({
      upsert: { method: 'POST', path: PATH },
      remove: { method: 'DELETE', path: PATH },
      ...options,
    }),
  };
}

export interface OpenWriter {
  readonly writer: Writer;
  /** A request with ids of its own each time. */
  request(action: Action, members: readonly Member[]): BatchRequest;
}

export async function openWriter(url: string, written: Written = {}): Promise<OpenWriter> {
  const { connection, options } = parsed(url, written);
  const context = { ...conformanceContext(new AbortController().signal), ...written.context };
  const writer = await httpDestination.open(connection, options, context);
  let serial = Date.now() % 1_000_000;
  return {
    writer,
    request: (action, members) => {
      serial += 1;
      return conformanceRequest(httpDestination.frame(action, options), action, members, serial);
    },
  };
}

export function member(id: string, payload: JsonObject = { plan: 'vip' }): Member {
  const identity = { email_sha256: id };
  return { identity, upsert: { ...identity, ...payload }, remove: identity };
}

/** `a`, `b`, `c`, … */
export function members(count: number): readonly Member[] {
  return Array.from({ length: count }, (_, index) => member(String.fromCharCode(97 + index)));
}
