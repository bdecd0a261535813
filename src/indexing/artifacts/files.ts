/**
 * Artifacts as files: `<folder>/sha256/<first two digits>/<all 64 digits>`. A file appears under its name whole and synced
 * to the disk, or not at all: it is written under another name and then linked, and a link never replaces what is there.
 */

import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { link, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type Artifact, MAX_ARTIFACT_BYTES, packArtifact } from '../../domain/artifact.ts';
import { RetlError } from '../../domain/errors.ts';
import { type ArtifactReference, hexOf } from '../../domain/ids.ts';
import {
  type ArtifactStore,
  type GotArtifact,
  type PutArtifact,
  referenceOf,
} from '../../journal/artifact-store.ts';
import { MAX_PACKED_BYTES, referenceOfName, verifyPacked } from './packed.ts';

/** Transient: full, too many open files, a disk or network that does not answer. Everything else, settings must mend. */
const UNAVAILABLE: readonly string[] = [
  'EIO',
  'ENOSPC',
  'EDQUOT',
  'EMFILE',
  'ENFILE',
  'EBUSY',
  'EAGAIN',
  'ESTALE',
];

const READABLE_ONLY = 0o444;

export class FileArtifacts implements ArtifactStore {
  readonly #folder: string;

  /** @param folder must be there: an unmounted disk shall not be taken for an empty store. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  async put(artifact: Artifact): Promise<PutArtifact> {
    const { length } = artifact.bytes;
    if (length > MAX_ARTIFACT_BYTES) return { kind: 'too-large', bytes: length };
    const reference = referenceOf(artifact);
    return inWords(reference, async () => {
      await this.#requireFolder();
      const kind = await this.#write(reference, packArtifact(artifact));
      if (kind === 'stored') return { kind, reference };
      const there = await this.#read(reference);
      // Gone again: somebody takes files away by hand.
      if (there.kind === 'missing')
        throw new RetlError('artifact.unavailable', { code: 'taken-away', reference });
      return { kind: there.kind === 'found' ? 'present' : 'corrupt', reference };
    });
  }

  get(reference: ArtifactReference): Promise<GotArtifact> {
    return inWords(reference, async () => {
      const got = await this.#read(reference);
      if (got.kind === 'missing') await this.#requireFolder();
      return got;
    });
  }

  list(after: ArtifactReference | null, limit: number): Promise<readonly ArtifactReference[]> {
    return inWords(null, async () => {
      await this.#requireFolder();
      const from = after === null ? '' : hexOf(after);
      const found: ArtifactReference[] = [];
      for (const shard of await namesIn(join(this.#folder, 'sha256'))) {
        if (shard < from.slice(0, 2)) continue;
        const names = shard.length === 2 ? await namesIn(join(this.#folder, 'sha256', shard)) : [];
        for (const name of names) {
          const reference = name.startsWith(shard) && name > from ? referenceOfName(name) : null;
          if (reference !== null) found.push(reference);
          if (found.length === limit) return found;
        }
      }
      return found;
    });
  }

  /** Makes a file as a put does, and takes it away again. @throws RetlError as a put */
  tryWriting(): Promise<void> {
    return inWords(null, async () => {
      await this.#requireFolder();
      const shards = join(this.#folder, 'sha256');
      const place = (await isFolder(shards)) ? shards : this.#folder;
      const draft = join(place, `.draft-${randomUUID()}`);
      const name = `${draft}-linked`;
      try {
        await writeDraft(draft, new Uint8Array());
        await linkNew(draft, name);
        await syncFolder(place);
      } finally {
        for (const made of [name, draft]) await unlink(made).catch(() => undefined);
      }
    });
  }

  async #write(reference: ArtifactReference, packed: Uint8Array): Promise<'stored' | 'there'> {
    const shard = this.#shardOf(reference);
    const name = join(shard, hexOf(reference));
    await mkdir(shard, { recursive: true });
    const draft = join(shard, `.draft-${randomUUID()}`);
    try {
      await writeDraft(draft, packed);
      const linked = await linkNew(draft, name);
      // Whether linked now or by another put that died before it came here.
      for (const folder of [shard, join(this.#folder, 'sha256'), this.#folder]) await syncFolder(folder);
      return linked ? 'stored' : 'there';
    } finally {
      await unlink(draft).catch(() => undefined);
    }
  }

  async #read(reference: ArtifactReference): Promise<GotArtifact> {
    const name = join(this.#shardOf(reference), hexOf(reference));
    let file: Awaited<ReturnType<typeof open>>;
    try {
      // Without waiting for what never comes from a pipe of this name.
      file = await open(name, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return { kind: 'missing' };
      throw error;
    }
    try {
      const about = await file.stat();
      if (!about.isFile() || about.size > MAX_PACKED_BYTES) return { kind: 'corrupt' };
      return verifyPacked(reference, await file.readFile());
    } finally {
      await file.close();
    }
  }

  async #requireFolder(): Promise<void> {
    if (!(await isFolder(this.#folder))) throw new RetlError('artifact.misconfigured', { code: 'ENOENT' });
  }

  #shardOf(reference: ArtifactReference): string {
    return join(this.#folder, 'sha256', hexOf(reference).slice(0, 2));
  }
}

/** `false`: nothing is there. @throws RetlError where something else is */
async function isFolder(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
  throw new RetlError('artifact.misconfigured', { code: 'ENOTDIR' });
}

async function writeDraft(draft: string, packed: Uint8Array): Promise<void> {
  const file = await open(draft, 'wx', READABLE_ONLY);
  try {
    await file.writeFile(packed);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** `false`: there is something of this name already. */
async function linkNew(draft: string, name: string): Promise<boolean> {
  try {
    await link(draft, name);
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Makes the names in a folder durable. Windows has no such thing, and does it by itself. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Sorted; empty where there is no such folder. */
async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return [];
    throw error;
  }
}

/** @throws RetlError with the system's code and the artifact that it is about, if any */
async function inWords<T>(reference: ArtifactReference | null, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = codeOf(error);
    if (error instanceof RetlError || code === '') throw error;
    const details = { code, ...(reference === null ? {} : { reference }) };
    const unavailable = UNAVAILABLE.includes(code);
    throw new RetlError(unavailable ? 'artifact.unavailable' : 'artifact.misconfigured', details);
  }
}

/** The system's code of an error (`ENOENT`); empty where it has none. */
function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}
