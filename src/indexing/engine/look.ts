/**
 * What the engine's user may do where an index is to be built, found out without doing it. The two engines have no question for
 * it in common, and one has none at all; but both refuse whoever lacks a right before they look at what a request is about. So
 * each right is asked for by a request that comes to nothing: of an index that is not there, with a setting that cannot be, or
 * of a document as it never was.
 */

import { randomBytes } from 'node:crypto';
import { RetlError } from '../../domain/errors.ts';
import { aliased } from './alias.ts';
import { ask, done, type Engine, refusal } from './ask.ts';
import { BUILD_ID, writeAlias } from './build-state.ts';
import type { EngineRequest } from './client.ts';
import { aliasOf, deleteIndex, directoryAlias, type Place, readDirectory } from './directory.ts';

interface Right {
  /** What is wrong where it is lacking. */
  readonly rule: string;
  /** Of the engine. */
  readonly index: string;
  readonly request: EngineRequest;
}

/**
 * Looks whether an index could be built and followed there.
 * @throws RetlError; `index.misconfigured` with a rule and the names that it is about where a right is lacking
 */
export async function lookAtEngine(engine: Engine, place: Place): Promise<void> {
  await done(engine, { method: 'GET', path: '/' });
  await aliased(engine, place);
  const { live, building } = await readDirectory(engine, place);
  const nowhere = `${aliasOf(place)}-v0-b0-${randomBytes(4).toString('hex')}`;
  const directory = directoryAlias(place);
  for (const right of [
    ...rightsTo(nowhere, aliasOf(place)),
    creating(`${directory}_0`),
    writing(directory, place.name),
  ])
    await require(engine, right);
  // What somebody has closed to writing shows by the same question.
  for (const build of [live, building])
    if (build !== null) await require(engine, writing(writeAlias(build), BUILD_ID));
}

/** @param index that is not there */
function rightsTo(index: string, alias: string): readonly Right[] {
  const actions = [{ add: { index, alias } }];
  return [
    creating(index),
    writing(index, BUILD_ID),
    {
      rule: 'may-not-lead-alias',
      index,
      request: { method: 'POST', path: '/_aliases', body: JSON.stringify({ actions }) },
    },
    {
      rule: 'may-not-change-settings',
      index,
      request: { method: 'PUT', path: `/${index}/_settings`, body: '{"index":{"refresh_interval":null}}' },
    },
    { rule: 'may-not-refresh', index, request: { method: 'POST', path: `/${index}/_refresh` } },
    { rule: 'may-not-delete', index, request: { method: 'DELETE', path: `/${index}` } },
  ];
}

/** No index has no shards. */
function creating(index: string): Right {
  const body = JSON.stringify({
    settings: { index: { number_of_shards: 0 } },
    aliases: { [writeAlias(index)]: {} },
  });
  return { rule: 'may-not-create', index, request: { method: 'PUT', path: `/${index}`, body } };
}

/** No document has been changed so often. */
function writing(index: string, id: string): Right {
  return {
    rule: 'may-not-write',
    index,
    request: {
      method: 'PUT',
      path: `/${index}/_doc/${id}`,
      query: { if_seq_no: Number.MAX_SAFE_INTEGER, if_primary_term: 1, require_alias: true },
      body: '{"stamp":"","state":{}}',
    },
  };
}

async function require(engine: Engine, { rule, index, request }: Right): Promise<void> {
  const { system } = engine.client;
  const answer = await ask(engine, request).catch((error: unknown) => {
    const code = error instanceof RetlError ? error.details.code : null;
    throw code === 'http-403' || code === 'http-401'
      ? new RetlError('index.misconfigured', { system, rule, index, code })
      : error;
  });
  // An engine that has its own mind about shards has made it: that answers the question as well.
  if (answer.status === 200 && rule === 'may-not-create') return deleteIndex(engine, index);
  if (![400, 404, 409].includes(answer.status)) throw refusal(engine, answer.status, answer.body);
}
