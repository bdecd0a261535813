/**
 * Whether a store of artifacts can be read, and the one that is written can be written, too: found out by doing it. In the journal
 * the write is rolled back, in a folder the file is taken away again. An object store has no such way, and its user need not be
 * allowed to delete: there an empty artifact stays, the same one each time, which nothing refers to.
 */

import { resolve } from 'node:path';
import { type Artifact, PROBE_ARTIFACT } from '../../domain/artifact.ts';
import { RetlError } from '../../domain/errors.ts';
import type { ArtifactStore } from '../../journal/artifact-store.ts';
import { journalArtifacts } from '../../journal/artifacts.ts';
import { JournalError } from '../../journal/errors.ts';
import { transaction } from '../../journal/pool.ts';
import type { JournalPool } from '../../journal/runs.ts';
import { FileArtifacts } from './files.ts';
import { openArtifacts } from './open.ts';
import type { ArtifactOptions } from './options.ts';

export interface StoreToLookAt {
  readonly options: ArtifactOptions;
  readonly projectDir: string;
  /** `false`: it was used before, and is read only. */
  readonly isWritten: boolean;
}

/** @returns what was looked at, in words. @throws RetlError, JournalError */
export async function lookAtStore(
  { options, projectDir, isWritten }: StoreToLookAt,
  journal: JournalPool,
): Promise<string> {
  const { store, close } = await openArtifacts(options, journal, projectDir);
  try {
    await store.list(null, 1);
    if (!isWritten) return 'it can be read; nothing is written there any more';
    switch (options.type) {
      case 'journal':
        await tryJournal(journal);
        return 'it can be read and written';
      case 'files':
        await new FileArtifacts(resolve(projectDir, options.folder)).tryWriting();
        return 'it can be read and written: a file was made there, and taken away again';
      case 's3':
        await putProbe(store);
        return 'it can be read and written: an empty artifact stays there, as a probe';
    }
  } finally {
    close();
  }
}

const PROBE: Artifact = { type: PROBE_ARTIFACT, bytes: new Uint8Array() };

/** What was written is not to be kept. */
class Undone extends Error {
  override readonly name = 'Undone';
}

async function tryJournal(journal: JournalPool): Promise<void> {
  try {
    await transaction(journal, async (client) => {
      await putProbe(journalArtifacts(client));
      throw new Undone();
    });
  } catch (error) {
    if (error instanceof Undone) return;
    // 42501: the role may not; 25006: the server takes no writes.
    if (error instanceof JournalError && /^(42501|25006)$/.test(error.sqlState))
      throw new RetlError('artifact.misconfigured', { code: error.sqlState });
    throw error;
  }
}

async function putProbe(store: ArtifactStore): Promise<void> {
  const put = await store.put(PROBE);
  if (put.kind === 'corrupt') throw new RetlError('artifact.corrupt', { reference: put.reference });
}
