/**
 * Destination `http`: any API that takes upserts and removals by identity, described in configuration alone.
 *
 * One batch is one request, sent at most once by one call: nothing below retries. What an answer proves is in answer.ts;
 * in short, accepted needs a success status and a reply that agrees for every operation, not-applied needs proof too
 * (no connection, or a status declared for it), and all else is unknown. An unknown request is sent again, with the
 * same bytes and key, only where the user has declared `idempotent: true`. A server that closes an idle connection just
 * as it is used again makes an unknown outcome; `keep_alive_ms` bounds that window, and 0 closes it. Where `asynchronous` is
 * configured an answer names a job (rule 5: staged, never accepted), which jobs.ts asks about; lookup.ts asks about a request.
 */

import type {
  Action,
  Capabilities,
  DestinationAdapter,
  RequestFrame,
  Writer,
  WriterContext,
} from '../port.ts';
import { ApiClient } from '../web-client.ts';
import { type HttpConnection, httpConnectionSchema } from './connection.ts';
import { httpFrame } from './frame.ts';
import { httpHints } from './hints.ts';
import { bodyShape, type HttpOptions, httpOptionsSchema, matches } from './options.ts';
import { httpRoute, httpTargetKey, httpWriteForm } from './target.ts';
import { placeholders } from './url.ts';
import { HttpWriter } from './writer.ts';

/** What is taken for any API's bounds; a mirror's `batch` settings say what this one takes. */
const MAX_ROWS = 100_000;
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_IN_FLIGHT = 64;

export type { HttpConnection, HttpOptions };

export const httpDestination: DestinationAdapter<HttpConnection, HttpOptions> = {
  type: 'http',
  connectionSchema: httpConnectionSchema,
  optionsSchema: httpOptionsSchema,

  capabilities(connection: HttpConnection, options: HttpOptions): Capabilities {
    return {
      strategies: ['snapshot-diff'],
      explicitRemoval: true,
      batchDelivery: options.asynchronous === undefined ? 'accepted' : 'asynchronous',
      recovery: recoveryOf(options),
      visible: 'on_accept',
      maxRows: isSingleRow(options) ? 1 : MAX_ROWS,
      maxBytes: MAX_BYTES,
      maxInFlight: MAX_IN_FLIGHT,
      ...(options.asynchronous?.max_jobs === undefined ? {} : { maxStaged: options.asynchronous.max_jobs }),
      longestRequestMs: longestRequestMs(connection),
      identityFolding: readsText(options) ? [...options.identity_folding, 'text'] : options.identity_folding,
    };
  },

  targetKey: httpTargetKey,

  writeForm: httpWriteForm,
  route: httpRoute,

  frame(action: Action, options: HttpOptions): RequestFrame {
    return httpFrame(action, options);
  },

  checkFields(
    options: HttpOptions,
    identity: readonly string[],
    payload: readonly string[],
  ): readonly string[] {
    return [...fieldProblems(options, identity, payload)];
  },

  hints: httpHints,

  open(connection: HttpConnection, options: HttpOptions, context: WriterContext): Promise<Writer> {
    return Promise.resolve(new HttpWriter(new ApiClient(connection, context), options, context));
  },
};

/** To ask is better than to send again, where the API can be asked. */
function recoveryOf({ lookup, idempotent }: HttpOptions): Capabilities['recovery'] {
  if (lookup !== undefined) return 'lookup';
  return idempotent ? 'idempotent' : 'manual';
}

/**
 * `timeout_ms` ends each exchange, its connecting included. With OAuth one call is up to four: a token, the request, and both
 * again where a stale token was refused.
 */
function longestRequestMs({ auth, timeout_ms }: HttpConnection): number {
  return timeout_ms * (typeof auth === 'object' && 'oauth2' in auth ? 4 : 1);
}

/** The port has one bound for both actions: where either goes one by one, both do. */
function isSingleRow(options: HttpOptions): boolean {
  return (['upsert', 'remove'] as const).some((action) => {
    const shape = bodyShape(options, action);
    return shape === 'single' || shape === 'none';
  });
}

/** A value in a path is its text: 1 and "1" lead to one member. */
function readsText({ upsert, remove }: HttpOptions): boolean {
  return [upsert, remove].some(({ path }) => placeholders(path).length > 0);
}

function* fieldProblems(
  options: HttpOptions,
  identity: readonly string[],
  payload: readonly string[],
): Generator<string> {
  for (const action of ['upsert', 'remove'] as const)
    for (const name of placeholders(options[action].path))
      if (!identity.includes(name))
        yield `${action}.path: "${name}" is not an identity field; these are: ${identity.join(', ')}`;
  const name = options.operation_id;
  if (name !== undefined && (identity.includes(name) || payload.includes(name)))
    yield `operation_id: "${name}" is also a field of the mapping`;
  if (options.lookup !== undefined && 'by_member' in options.lookup)
    for (const asked of placeholders(options.lookup.by_member.path))
      if (!identity.includes(asked))
        yield `lookup.by_member.path: "${asked}" is not an identity field; these are: ${identity.join(', ')}`;
  for (const [place, match] of matches(options))
    if (match !== 'operation_id' && !identity.includes(match))
      yield `${place}: "${match}" is not an identity field; it may be ${identity.join(', ')} or operation_id`;
    else if (match !== 'operation_id' && identity.length > 1)
      yield `${place}: one of several identity fields does not tell members apart; use operation_id`;
}
