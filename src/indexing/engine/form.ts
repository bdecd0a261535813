/**
 * What an index of the kind `membership-search` is in a search engine: a document for each member of a mirror's target, found by its
 * exact identity and by the words of the identity's values. Whoever is gone leaves a document that says so: its version keeps an older
 * write out, its values go.
 */

import type { IndexDefinition } from '../../domain/checkpoint-validation.ts';
import { sha256FromHex } from '../../domain/ids.ts';
import { sha256Parts } from '../../journal/artifact-store.ts';
import { STATE_MAPPING } from './documents.ts';

export interface EngineForm {
  /** Raised with every change of what the documents are; then every index of the kind is built anew. */
  readonly schemaVersion: number;
  /** Of the mapping; nothing but these is taken. */
  readonly properties: { readonly [field: string]: object };
}

const stored = { type: 'keyword', index: false } as const;

/** A term of Lucene has at most 32,766 bytes: a longer identity is found by its hash, a longer value by looking at it. */
const LONGEST_KEYWORD = 8_191;

/** Versions begin at 1001, so that an index may move between PostgreSQL and an engine under its name. */
export const MEMBERSHIP_SEARCH: EngineForm = {
  schemaVersion: 1_001,
  properties: {
    mirror: { type: 'keyword' },
    identity: { type: 'keyword', ignore_above: LONGEST_KEYWORD },
    /** The identity's values, folded, without their names: by their words, and each as a whole. */
    text: { type: 'text', fields: { whole: { type: 'keyword', ignore_above: LONGEST_KEYWORD } } },
    since_at: { type: 'date_nanos' },
    accepted_at: { type: 'date_nanos' },
    run_id: { type: 'long' },
    since: { type: 'long' },
    position: { type: 'long' },
    target_id: { type: 'long' },
    identity_hash: { type: 'keyword' },
    payload_hash: stored,
    gone: { type: 'boolean' },
  },
};

/** What readers see through the alias. */
export const HELD = { term: { gone: false } } as const;

export interface IndexShape {
  readonly shards: number;
  readonly replicas: number;
}

/** What the documents of one index are about, for whoever finds it there. */
export interface IndexMeta {
  readonly index: string;
  readonly build: bigint;
  readonly logId: string;
  readonly scratch: boolean;
}

/** The body that creates the index of a build. Writers use an alias of it: writing to one that is gone makes none. */
export function createBody(form: EngineForm, shape: IndexShape, meta: IndexMeta, writeAlias: string): string {
  const { index, build, logId: log_id, scratch } = meta;
  return JSON.stringify({
    settings: {
      index: {
        number_of_shards: shape.shards,
        number_of_replicas: shape.replicas,
        // Nobody reads it before it has caught up.
        refresh_interval: -1,
        'translog.durability': scratch ? 'async' : 'request',
      },
    },
    mappings: {
      dynamic: 'strict',
      _meta: { retl: { index, build: `${build}`, log_id, scratch } },
      properties: { ...form.properties, ...STATE_MAPPING },
    },
    aliases: { [writeAlias]: {} },
  });
}

export function engineDefinition(name: string, form: EngineForm): IndexDefinition {
  const described = JSON.stringify(['membership-search', form.properties, HELD]);
  return {
    name,
    schemaVersion: form.schemaVersion,
    fingerprint: sha256FromHex(sha256Parts([Buffer.from(described, 'utf8')])),
  };
}
