/** Scenes with an object store: one store for a system, a bucket for each mirror. */

import { type OpenStore, startStore } from '../contract/destination-s3-kit.ts';
import type { System } from '../support/system.ts';
import { Scene, type SceneOptions, tableOf } from '../support/system-scene.ts';

/** What the workers' environment holds for it: the writer's keys, which every store for tests knows. */
export const STORE_ENV = { STORE_KEY_ID: 'writer-key-id', STORE_KEY: 'writer secret/+key' };

const stores = new WeakMap<System, Promise<OpenStore>>();

/** Started by the first scene that needs one, and stopped with its system. */
function storeOf(system: System): Promise<OpenStore> {
  const found = stores.get(system);
  if (found !== undefined) return found;
  const store = startStore();
  system.defer(async () => (await store).close());
  stores.set(system, store);
  return store;
}

export class StoreScene extends Scene {
  private constructor(
    system: System,
    mirror: string,
    private readonly store: OpenStore,
    private readonly bucket: string,
  ) {
    super(system, mirror, tableOf(mirror));
  }

  static async create(system: System, name: string, options: SceneOptions): Promise<StoreScene> {
    const store = await storeOf(system);
    const scene = new StoreScene(system, name, store, await store.newBucket());
    await scene.createSource(options.rows ?? 10);
    await system.connect(`${name}-store`, {
      type: 's3',
      endpoint: `http://127.0.0.1:${store.proxy.port}`,
      access_key_id: `\${env:STORE_KEY_ID}`,
      secret_access_key: `\${env:STORE_KEY}`,
    });
    await scene.write({ connection: `${name}-store`, bucket: scene.bucket }, options);
    return scene;
  }

  /** The published set, by identity, as a reader finds it who follows the manifest. */
  async members(): Promise<ReadonlyMap<string, unknown>> {
    const lines = (await this.store.read(this.bucket)) ?? [];
    return new Map(lines.map((line) => JSON.parse(line)).map((row: { id: string }) => [row.id, row]));
  }
}
