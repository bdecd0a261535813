/** Imports of baselines into a journal, as the worker's program does them; the destination is never opened. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { z } from 'zod';
import { type BaselineFile, importBaseline, inspectBaseline } from '../../src/activities/import-baseline.ts';
import type { DestinationAdapter } from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import type { MirrorSettings, Options } from '../../src/domain/settings.ts';
import type { Column } from '../../src/domain/source-row.ts';
import type { SourceAdapter } from '../../src/sources/port.ts';
import { modelSettings } from '../model/adapters.ts';
import { targetOf } from './journal-run.ts';

/** What a mirror of `ScriptedRun` writes to, and would fold identities by. */
function adapterOf(mirror: string): DestinationAdapter {
  return {
    type: 'model',
    connectionSchema: z.object({}),
    optionsSchema: z.object({}),
    capabilities: () => ({
      strategies: ['snapshot-diff'],
      explicitRemoval: true,
      batchDelivery: 'accepted',
      recovery: 'manual',
      visible: 'on_accept',
      maxRows: 1_000,
      maxBytes: 1_000_000,
      maxInFlight: 1,
      longestRequestMs: 1_000,
      identityFolding: [],
    }),
    targetKey: () => targetOf(mirror),
    frame: () => ARRAY_FRAME,
    checkFields: () => [],
    open: () => Promise.reject(new Error('nothing is opened')),
  };
}

function sourceOf(columns: readonly Column[]): SourceAdapter {
  return {
    type: 'model',
    connectionSchema: z.object({}),
    open: () => Promise.reject(new Error('nothing is read')),
    describe: async () => columns,
  };
}

export class BaselineImport {
  private constructor(
    readonly mirror: string,
    readonly settings: MirrorSettings,
    private readonly columns: readonly Column[],
    private readonly folder: string,
  ) {}

  static async of(
    mirror: string,
    columns: readonly Column[],
    changes: Partial<MirrorSettings> = {},
  ): Promise<BaselineImport> {
    const plain = modelSettings(mirror, { rows: 1_000, inFlight: 8, kind: 'manual', asynchronous: false });
    const settings: MirrorSettings = { ...plain, baseline: { kind: 'tracked', attested: null }, ...changes };
    return new BaselineImport(mirror, settings, columns, await mkdtemp(join(tmpdir(), 'baseline-')));
  }

  async write(name: string, content: string | Uint8Array): Promise<BaselineFile> {
    const path = join(this.folder, name);
    await writeFile(path, content);
    return { path, isMapped: false };
  }

  inspect(file: BaselineFile) {
    return inspectBaseline(this.#deps(), this.settings, file);
  }

  /** Looks at the file, and imports what it shows. */
  async import(journal: pg.Pool, file: BaselineFile, digest?: string): Promise<number> {
    const shown = digest ?? (await this.inspect(file)).digest;
    const order = { ...file, digest: shown, by: 'ada', because: 'export of Monday' };
    return importBaseline(this.#deps(), journal, this.settings, order);
  }

  close(): Promise<void> {
    return rm(this.folder, { recursive: true });
  }

  #deps() {
    const configuration = {
      mirror: async () => this.settings,
      text: () => JSON.stringify({ mirror: this.mirror }),
      parse: () => this.settings,
      resolve: (options: Options) => options,
      projection: () => Promise.reject(new Error('there is no module')),
    };
    return {
      sources: [sourceOf(this.columns)],
      destinations: [adapterOf(this.mirror)],
      configuration,
    };
  }
}
