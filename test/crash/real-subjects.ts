/** Subjects of the matrix whose destinations are adapters that are shipped, against fakes and tables that keep book of everything. */

import { expect } from 'vitest';
import type { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';
import { JobsScene } from '../support/system-jobs.ts';
import { heldByLog, recordOf } from '../support/system-people.ts';
import { SalesforceScene } from '../support/system-salesforce.ts';
import type { Scene } from '../support/system-scene.ts';
import type { RealKind } from './row.ts';
import { StoreScene } from './store-scene.ts';
import type { Subject } from './subject.ts';

interface Real {
  readonly scene: Scene;
  /** What the destination holds, by identity, in the words of the query. */
  members(): Promise<ReadonlyMap<string, unknown>>;
  /** How often each thing was asked for or done that must happen once. */
  book(): readonly string[];
  /** Entries of the book when everything is over. */
  readonly effects: number;
  /** Field of a payload that names the member. */
  readonly name?: string;
}

const BATCH = { rows: 3, in_flight: 1 };
const ROWS = 6;
/** Two removals and a change. */
const DIFFERENT = `delete from $table where id < 'm003'; update $table set plan = 'gold' where id = 'm003'`;

/** Its first run is complete, and the source has changed. */
export async function realSubject(system: System, kind: RealKind, name: string): Promise<Subject> {
  const real = await REAL[kind](system, name);
  const { scene, effects } = real;
  await scene.completed();
  await scene.exec(DIFFERENT);
  return {
    scene,
    effects,
    hold: () => {
      throw new Error('only a ledger stands still');
    },
    logged: () => heldByLog(scene, undefined, real.name),
    expectExact: (count) => exact(real, count),
    everything: async () => JSON.stringify([await recordOf(scene), [...(await real.members())], real.book()]),
    resolve: () => Promise.reject(new Error('nobody needs to look')),
    relent: () => undefined,
  };
}

async function exact(real: Real, effects: number): Promise<void> {
  const wanted = await real.scene.wanted();
  expect(await real.members()).toEqual(wanted);
  expect([...(await heldByLog(real.scene, undefined, real.name)).keys()].sort()).toEqual(
    [...wanted.keys()].sort(),
  );
  const book = real.book();
  expect(book).toHaveLength(effects);
  expect(new Set(book).size).toBe(effects);
}

const REAL: { readonly [K in RealKind]: (system: System, name: string) => Promise<Real> } = {
  http: async (system, name) => {
    const destination = { lookup: { by_key: { path: '/keys/{key}' } } };
    const scene = await HttpScene.create(system, name, { rows: ROWS, mirror: { batch: BATCH }, destination });
    return {
      scene,
      members: async () => scene.audience.state.members,
      book: () => scene.writes.map(({ key }) => key),
      effects: 2 + 2,
    };
  },
  jobs: async (system, name) => {
    const destination = { lookup: { by_key: { path: '/keys/{key}' } } };
    const scene = await JobsScene.create(system, name, { rows: ROWS, batch: BATCH, destination });
    return {
      scene,
      members: async () =>
        new Map([...scene.api.members].map(([id, { plan }]) => [id, { id, plan }] as const)),
      book: () => scene.api.jobs.map(({ key }) => String(key)),
      effects: 2 + 2,
      name: 'email_sha256',
    };
  },
  org: async (system, name) => {
    const scene = await SalesforceScene.create(system, name, { rows: ROWS, mirror: { batch: BATCH } });
    return {
      scene,
      members: async () => scene.members,
      // A member that is changed is upserted twice in all: by the first run, and by the second.
      book: () => scene.fake.org.effects.map((effect, at) => (at < ROWS ? `first ${effect}` : effect)),
      effects: ROWS + 3,
    };
  },
  table: (system, name) => tables(system, name, {}),
  swap: (system, name) => tables(system, name, { swap: 'replace' }),
  rename: (system, name) => tables(system, name, { swap: 'rename', accept_losses: ['grants'] }),
  store: async (system, name) => {
    const scene = await StoreScene.create(system, name, { rows: ROWS, mirror: REPLACING });
    return { scene, members: () => scene.members(), book: () => [], effects: 0 };
  },
};

const REPLACING = {
  batch: BATCH,
  strategy: 'native-replace',
  safety: { max_removals: '100%', empty_snapshot: 'allow' },
};

interface TableOptions {
  readonly swap?: 'replace' | 'rename';
  readonly accept_losses?: readonly string[];
}

async function tables(system: System, name: string, destination: TableOptions): Promise<Real> {
  const scene = await TableScene.create(system, name, {
    rows: ROWS,
    mirror: destination.swap === undefined ? { batch: BATCH } : REPLACING,
    destination,
    // Who puts a table into the place of another one owns it.
    owned: destination.swap === 'rename',
  });
  const members = async () => {
    const rows = (await scene.targetRows()) as readonly { readonly id: string }[];
    return new Map(rows.map((row) => [row.id, row]));
  };
  return { scene, members, book: () => [], effects: 0 };
}
