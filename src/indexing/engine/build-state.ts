/**
 * A build's own state, as a document of the very index that holds its rows: whoever restores the one restores the other. Beside
 * the checkpoint it says who works on the build, and how far rows may stand there that no checkpoint speaks of yet.
 */

import { z } from 'zod';
import { RetlError } from '../../domain/errors.ts';
import { buildId, type LogPosition, logPosition, type Sha256, sha256 } from '../../domain/ids.ts';
import type { OwnBuild } from '../indexer.ts';
import type { Engine } from './ask.ts';
import { compareAndSet, type Revision, readDocument } from './documents.ts';

/** A build with what only this kind of index knows of it. */
export interface KeptBuild extends OwnBuild {
  /** Of the engine. */
  readonly engineIndex: string;
  /** Which builder works on it; a word of no meaning. */
  readonly holder: string;
  /** Raised by each builder that takes it over; the one before can write no checkpoint any more. */
  readonly epoch: number;
  readonly revision: Revision;
}

export const BUILD_ID = 'retl-build';

/** Where rows are written to: an alias, so that an index that is gone is not made anew by writing. */
export function writeAlias(engineIndex: string): string {
  return `${engineIndex}-w`;
}

const u64 = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt);
const hash = z.string().transform((text, context): Sha256 => {
  try {
    return sha256(text);
  } catch {
    context.addIssue({ code: 'custom', message: 'no hash' });
    return z.NEVER;
  }
});
const position = u64.transform((value): LogPosition => logPosition(value));
const place = z.object({ position, entry_hash: hash });

const stateForm = z.object({
  index: z.string(),
  build: u64.transform((value) => buildId(value)),
  schema_version: z.number(),
  fingerprint: hash,
  log_id: z.string(),
  snapshot: z.object({ id: u64, boundary: position, digest: hash }).nullable(),
  goal: position.nullable(),
  loaded: z.object({ target: u64, identity_hash: z.string() }).nullable(),
  mark: place.extend({ reference: hash }).nullable(),
  previous: hash.nullable(),
  ahead: place.nullable(),
  rows: u64,
  holder: z.string(),
  epoch: z.number(),
});

/** `null`: the index, or this document of it, is gone. @throws RetlError */
export async function readBuild(
  engine: Engine,
  engineIndex: string,
  state: OwnBuild['state'],
): Promise<KeptBuild | null> {
  const found = await readDocument(engine, engineIndex, BUILD_ID);
  if (found === null) return null;
  const read = stateForm.safeParse(found.state);
  if (!read.success)
    throw new RetlError('index.misconfigured', { system: engine.client.system, rule: 'build-state' });
  return { ...decoded(read.data), state, engineIndex, revision: found.revision };
}

function decoded(s: z.output<typeof stateForm>): Omit<KeptBuild, 'state' | 'engineIndex' | 'revision'> {
  const { fingerprint, log_id: logId, snapshot, loaded, mark, ahead } = s;
  return {
    build: s.build,
    definition: { name: s.index, schemaVersion: s.schema_version, fingerprint },
    logId,
    snapshot,
    goal: s.goal,
    loaded:
      loaded === null
        ? null
        : { target: loaded.target, identityHash: Buffer.from(loaded.identity_hash, 'hex') },
    mark:
      mark === null
        ? null
        : {
            reference: mark.reference,
            position: mark.position,
            entryHash: mark.entry_hash,
            logId,
            fingerprint,
            snapshot,
          },
    previous: s.previous,
    ahead: ahead === null ? null : { position: ahead.position, entryHash: ahead.entry_hash },
    rows: s.rows,
    holder: s.holder,
    epoch: s.epoch,
  };
}

/** `null`: another builder has changed it since it was read. @throws RetlError */
export async function writeBuild(engine: Engine, next: KeptBuild): Promise<KeptBuild | null> {
  const written = await compareAndSet(
    engine,
    writeAlias(next.engineIndex),
    BUILD_ID,
    next.revision,
    encoded(next),
  );
  return written.kind === 'raced' ? null : { ...next, revision: written.revision };
}

/** The first state of a build. `null`: it has one. @throws RetlError */
export async function createBuild(
  engine: Engine,
  first: Omit<KeptBuild, 'revision'>,
): Promise<KeptBuild | null> {
  const written = await compareAndSet(engine, writeAlias(first.engineIndex), BUILD_ID, null, encoded(first));
  return written.kind === 'raced' ? null : { ...first, revision: written.revision };
}

function encoded(b: Omit<KeptBuild, 'revision'>): z.input<typeof stateForm> {
  const { definition, snapshot, loaded, mark, ahead } = b;
  return {
    index: definition.name,
    build: `${b.build}`,
    schema_version: definition.schemaVersion,
    fingerprint: definition.fingerprint,
    log_id: b.logId,
    snapshot:
      snapshot === null
        ? null
        : { id: `${snapshot.id}`, boundary: `${snapshot.boundary}`, digest: snapshot.digest },
    goal: b.goal === null ? null : `${b.goal}`,
    loaded:
      loaded === null
        ? null
        : { target: `${loaded.target}`, identity_hash: Buffer.from(loaded.identityHash).toString('hex') },
    mark:
      mark === null
        ? null
        : { reference: mark.reference, position: `${mark.position}`, entry_hash: mark.entryHash },
    previous: b.previous,
    ahead: ahead === null ? null : { position: `${ahead.position}`, entry_hash: ahead.entryHash },
    rows: `${b.rows}`,
    holder: b.holder,
    epoch: b.epoch,
  };
}
