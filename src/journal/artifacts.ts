/** Artifacts in the journal itself: the default store (design.md section 7). The database refuses every change of one. */

import { type Artifact, MAX_ARTIFACT_BYTES } from '../domain/artifact.ts';
import { type ArtifactReference, sha256FromHex } from '../domain/ids.ts';
import { type ArtifactStore, type GotArtifact, type PutArtifact, referenceOf } from './artifact-store.ts';
import { hashBytes } from './batches.ts';
import { bytes, object, text } from './decode.ts';
import { JournalError } from './errors.ts';
import { call, type Queryable, run } from './pool.ts';

/** @param db a connection in a transaction makes a put part of it, and durable with it. */
export function journalArtifacts(db: Queryable): ArtifactStore {
  return {
    put: (artifact) => putArtifact(db, artifact),
    get: (reference) => getArtifact(db, reference),
    list: (after, limit) => listArtifacts(db, after, limit),
  };
}

async function putArtifact(db: Queryable, artifact: Artifact): Promise<PutArtifact> {
  const { type, bytes: content } = artifact;
  if (content.length > MAX_ARTIFACT_BYTES) return { kind: 'too-large', bytes: content.length };
  const reference = referenceOf(artifact);
  const answer = await call(db, 'retl.put_artifact($1,$2,$3)', [hashBytes(reference), type, buffer(content)]);
  return { kind: text(object(answer), 'kind') as 'stored' | 'present' | 'corrupt', reference };
}

const GET = 'select type, bytes from retl.artifact where reference = $1';
/** The server has found a page or a compressed value that is not what it wrote. */
const DATA_CORRUPTED = 'XX001';

async function getArtifact(db: Queryable, reference: ArtifactReference): Promise<GotArtifact> {
  let rows: Awaited<ReturnType<typeof run>>;
  try {
    rows = await run(db, GET, [hashBytes(reference)]);
  } catch (error) {
    if (error instanceof JournalError && error.sqlState === DATA_CORRUPTED) return { kind: 'corrupt' };
    throw error;
  }
  const [row] = rows;
  if (row === undefined) return { kind: 'missing' };
  const artifact = { type: text(row, 'type'), bytes: bytes(row, 'bytes') };
  return isThat(reference, artifact) ? { kind: 'found', artifact } : { kind: 'corrupt' };
}

/** A damaged type may be no type's name at all. */
function isThat(reference: ArtifactReference, artifact: Artifact): boolean {
  try {
    return referenceOf(artifact) === reference;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

const LIST = `
  select encode(reference, 'hex') as reference from retl.artifact
  where $1::bytea is null or reference > $1 order by reference limit $2`;

async function listArtifacts(
  db: Queryable,
  after: ArtifactReference | null,
  limit: number,
): Promise<readonly ArtifactReference[]> {
  const rows = await run(db, LIST, [after === null ? null : hashBytes(after), limit]);
  return rows.map((row) => sha256FromHex(text(row, 'reference')));
}

function buffer(content: Uint8Array): Buffer {
  return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
}
