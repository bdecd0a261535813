/**
 * An index in OpenSearch or Elasticsearch (design.md section 7). Each build is an index of the engine; readers ask an alias that has
 * the index's name, which leads to the live one. Which builds there are stands in the directory, how far each is in itself.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import { RetlError } from '../../domain/errors.ts';
import type { EngineName, Options } from '../../domain/settings.ts';
import type { Applied, Astray, Batch, Indexer, MakeMark, NewBuild, OwnBuild } from '../indexer.ts';
import { aliasAstray, aliased, healAlias, swapAlias, sweep } from './alias.ts';
import { applyBatch } from './apply.ts';
import { done, type Engine, isIndexGone, PATIENCE, type Patience } from './ask.ts';
import { createBuild, type KeptBuild, readBuild, writeAlias } from './build-state.ts';
import { openEngine } from './client.ts';
import {
  addAlias,
  aliasOf,
  createIndex,
  type Directory,
  deleteIndex,
  type Place,
  prepareDirectory,
  readDirectory,
  refresh,
  writeDirectory,
} from './directory.ts';
import { createBody, type EngineForm, engineDefinition, type IndexShape } from './form.ts';
import { lookAtEngine } from './look.ts';
import { engineOptions } from './options.ts';
import { openScratch } from './scratch.ts';

export interface EngineIndexOptions {
  readonly name: string;
  readonly system: EngineName;
  readonly form: EngineForm;
  /** As in retl.yaml, references resolved. */
  readonly options: Options;
  readonly holdsLog: boolean;
  readonly patience?: Patience;
}

/** Connects when it is first asked something. @throws RetlError `index.misconfigured` */
export async function engineIndexer(index: EngineIndexOptions): Promise<Indexer> {
  const { name, system, form, holdsLog, options, patience = PATIENCE } = index;
  const access = engineOptions(system, options);
  const { prefix, replicas, shards } = access;
  const engine = { client: await openEngine(system, access), patience };
  return new EngineIndexer(engine, { prefix, replicas, name }, form, { shards, replicas }, holdsLog);
}

/** How often a change of the directory is tried that somebody else's keeps out. */
const TRIES = 5;

class EngineIndexer implements Indexer {
  readonly definition;
  /** This builder, as builds name whoever works on them. */
  readonly #holder = randomUUID();

  constructor(
    private readonly engine: Engine,
    private readonly place: Place,
    private readonly form: EngineForm,
    private readonly shape: IndexShape,
    readonly holdsLog: boolean,
  ) {
    this.definition = engineDefinition(place.name, form);
  }

  async look(): Promise<void> {
    await lookAtEngine(this.engine, this.place);
  }

  async prepare(): Promise<void> {
    await prepareDirectory(this.engine, this.place);
    await healAlias(this.engine, this.place);
  }

  async astray(): Promise<Astray | null> {
    const { engine, place } = this;
    // A promotion leads the alias on after it has said so in the directory.
    return (await aliasAstray(engine, place)) === null ? null : aliasAstray(engine, place);
  }

  async builds(): Promise<readonly KeptBuild[]> {
    const { live, building } = await readDirectory(this.engine, this.place);
    const found = [
      live === null ? null : await readBuild(this.engine, live, 'live'),
      building === null ? null : await readBuild(this.engine, building, 'building'),
    ];
    // One that was deleted by hand is none.
    return found.filter((build) => build !== null);
  }

  async begin(build: NewBuild): Promise<{ readonly kind: 'begun' | 'raced' }> {
    const directory = await readDirectory(this.engine, this.place);
    const { building } = directory;
    if (building !== null && (await readBuild(this.engine, building, 'building')) !== null)
      return { kind: 'raced' };
    await aliased(this.engine, this.place);
    const engineIndex = this.#nameOf(build.definition.schemaVersion, build.build);
    const written = await writeDirectory(this.engine, this.place, { ...directory, building: engineIndex });
    if (written === null) return { kind: 'raced' };
    try {
      await this.#create(engineIndex, build);
    } catch (error) {
      if (isIndexGone(error)) return { kind: 'raced' };
      throw error;
    }
    // Whoever found the directory's word before the build was there has begun another.
    const now = await readDirectory(this.engine, this.place);
    if (now.building === engineIndex) return { kind: 'begun' };
    await deleteIndex(this.engine, engineIndex);
    return { kind: 'raced' };
  }

  /** Builds of a journal that was restored have their numbers again: each has a word of its own. */
  #nameOf(schemaVersion: number, build: bigint): string {
    const word = randomBytes(4).toString('hex');
    return `${aliasOf(this.place)}-v${schemaVersion}-b${build}-${word}`;
  }

  async #create(engineIndex: string, build: NewBuild): Promise<void> {
    const meta = { index: this.place.name, build: build.build, logId: build.logId, scratch: false };
    await createIndex(
      this.engine,
      engineIndex,
      createBody(this.form, this.shape, meta, writeAlias(engineIndex)),
    );
    await createBuild(this.engine, {
      ...build,
      engineIndex,
      state: 'building',
      loaded: null,
      mark: null,
      previous: null,
      ahead: null,
      rows: 0n,
      holder: this.#holder,
      epoch: 1,
    });
  }

  async apply(build: OwnBuild, batch: Batch, mark: MakeMark | null): Promise<Applied> {
    const kept = await this.#kept(build);
    if (kept === null) return { kind: 'raced' };
    return this.#unlessGone(kept, () => applyBatch(this.engine, kept, batch, mark, this.#holder));
  }

  async promote(build: OwnBuild): Promise<Applied> {
    const kept = await this.#kept(build);
    if (kept === null) return { kind: 'raced' };
    return this.#unlessGone(kept, () => this.#promoted(kept));
  }

  /**
   * A build that was taken away while it was worked on is lost, as one that another builder has moved on is. Where its name
   * alone was taken away, by which it is written, it has that again for the next call.
   */
  async #unlessGone({ engineIndex, state }: KeptBuild, work: () => Promise<Applied>): Promise<Applied> {
    try {
      return await work();
    } catch (error) {
      if (!isIndexGone(error)) throw error;
      if ((await readBuild(this.engine, engineIndex, state)) === null) return { kind: 'raced' };
      await addAlias(this.engine, engineIndex, writeAlias(engineIndex));
      throw error;
    }
  }

  async #promoted(kept: KeptBuild): Promise<Applied> {
    const { engine, place } = this;
    const { engineIndex } = kept;
    await done(engine, {
      method: 'PUT',
      path: `/${engineIndex}/_settings`,
      body: JSON.stringify({ index: { refresh_interval: null } }),
    });
    await refresh(engine, engineIndex);
    const directory = await readDirectory(engine, place);
    if (directory.building !== engineIndex) return { kind: 'raced' };
    const next = await writeDirectory(engine, place, { ...directory, live: engineIndex, building: null });
    if (next === null) return { kind: 'raced' };
    // Whoever dies here leaves readers at the build before; the next `prepare` leads them on.
    await swapAlias(engine, place, engineIndex, await aliased(engine, place));
    await this.#clean(next);
    return { kind: 'applied', build: { ...kept, state: 'live' } };
  }

  async retire(build: bigint): Promise<void> {
    for (let tried = 0; tried < TRIES; tried += 1) {
      const directory = await readDirectory(this.engine, this.place);
      const { building } = directory;
      if (building === null) return;
      if ((await readBuild(this.engine, building, 'building'))?.build !== build) return;
      const next = await writeDirectory(this.engine, this.place, { ...directory, building: null });
      if (next !== null) return deleteIndex(this.engine, building);
    }
  }

  async scratch(live: OwnBuild, _boundary: unknown) {
    const kept = await this.#kept(live);
    if (kept === null) throw new RetlError('index.not-built', { index: this.place.name });
    const engineIndex = `${this.#nameOf(kept.definition.schemaVersion, kept.build)}-scratch`;
    return openScratch(this.engine, this.place, this.form, kept, engineIndex);
  }

  async close(): Promise<void> {
    await this.engine.client.close();
  }

  /** What nobody sees any more; where it cannot be deleted now, the next build does it. */
  async #clean(directory: Directory): Promise<void> {
    await sweep(this.engine, this.place, directory).catch(() => undefined);
  }

  /** A build as it was read or returned last; one that was just begun is read. `null`: it has changed meanwhile, or is gone. */
  async #kept(build: OwnBuild): Promise<KeptBuild | null> {
    if (isKept(build)) return build;
    const found = (await this.builds()).find((one) => one.build === build.build && one.state === build.state);
    const isSame =
      found !== undefined &&
      found.mark?.reference === build.mark?.reference &&
      isFresh(found) === isFresh(build);
    return isSame ? found : null;
  }
}

function isFresh({ loaded }: OwnBuild): boolean {
  return loaded === null;
}

function isKept(build: OwnBuild): build is KeptBuild {
  return 'revision' in build && 'engineIndex' in build;
}
