/** What a cell of the matrix is played with: a mirror, its destination, and how both are looked at. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { LedgerMode } from '../support/ledger.ts';
import { LedgerScene, type RecoveryKind } from '../support/ledger-scene.ts';
import type { System } from '../support/system.ts';
import type { Held } from '../support/system-journal-proxy.ts';
import { ending, type Scene } from '../support/system-scene.ts';
import { realSubject } from './real-subjects.ts';
import type { LedgerKind, Place, RealKind, Row } from './row.ts';

/** A mirror and its destination, whichever it is. */
export interface Subject {
  readonly scene: Scene;
  /** Members added, changed and removed, or uploaded and dropped, when everything is over. */
  readonly effects: number;
  /** Stops the destination at one of its steps. */
  hold(at: Extract<Place, { kind: 'ledger' }>): Held;
  /** The log says nothing that is not so, at whatever moment one looks. */
  logged(): Promise<unknown>;
  /** Complete: the destination is what the query returns, the log says the same, and nothing was done twice. */
  expectExact(effects: number): Promise<void>;
  /** All that the journal and the destination have on record, to compare. */
  everything(): Promise<string>;
  /** A person finds out what is so, and says it. */
  resolve(batch: string, verdict: 'accepted' | 'not-applied'): Promise<void>;
  /** Where a rejection holds the run: the destination takes the one now. */
  relent(): void;
}

interface LedgerPlay {
  readonly mode?: LedgerMode;
  /** Sections of the mirror's file. */
  readonly settings?: { readonly [section: string]: unknown };
  /** Between its first run and the one that the row is about; absent: there is no run before. */
  readonly before?: (scene: LedgerScene) => Promise<unknown>;
  readonly effects: number;
}

const DIFFERENT = `delete from $table where id < 'm003'; update $table set plan = 'gold' where id = 'm003'`;
const DROPPED = `delete from $table where id < 'm005'`;

const LEDGERS: { readonly [K in LedgerKind]: LedgerPlay } = {
  first: { effects: 6 },
  busy: { effects: 6 },
  later: { mode: 'later', effects: 6 },
  slow: { mode: 'slow', effects: 6 },
  removals: { before: (scene) => scene.exec(DIFFERENT), effects: 6 + 2 + 1 },
  replace: { mode: 'replace', before: (scene) => scene.exec(DIFFERENT), effects: 6 + 4 + 2 },
  publish: { mode: 'publish', before: (scene) => scene.exec(DIFFERENT), effects: 6 + 4 + 2 },
  parked: { before: (scene) => scene.exec(DROPPED), effects: 6 + 4 },
  resumed: { before: cancelledWhileParked, effects: 6 + 4 + 1 },
  stale: { effects: 6 },
  tolerated: { settings: { on_rejection: { tolerate: { max: 1 } } }, effects: 5 },
  held: { settings: { on_rejection: 'continue' }, effects: 6 },
  refresh: { settings: { refresh_after: '1s' }, before: () => sleep(1_100), effects: 6 + 6 },
};

/** Another execution takes over what it has sealed, and goes on with the source as it is now. */
async function cancelledWhileParked(scene: LedgerScene): Promise<void> {
  await scene.exec(DROPPED);
  const handle = await scene.start();
  await scene.untilParked(handle);
  await scene.signal('cancel');
  await ending(handle);
  await scene.exec(`insert into $table values ('m900', 'late')`);
}

/** An execution that was terminated while its worker read the source, which has changed since. */
async function terminatedWhileReading(system: System, scene: LedgerScene): Promise<void> {
  const read = system.proxy.hold({ statement: 'retl.loaded(', how: 'unanswered' });
  const handle = await scene.start();
  await read.reached;
  await handle.terminate('by a test');
  read.release();
  await scene.exec(`update $table set plan = 'gold'`);
}

let serial = 0;

export function isReal(row: Row): row is Row & { readonly scene: RealKind } {
  return !(row.scene in LEDGERS);
}

/** Makes a mirror, and brings it to just before the run that the row is about. */
export async function subjectOf(system: System, row: Row, kind: RecoveryKind): Promise<Subject> {
  serial += 1;
  const name = `cell-${serial}-${kind}`;
  if (isReal(row)) return realSubject(system, row.scene, name);
  return ledgerSubject(system, row.scene as LedgerKind, name, kind);
}

async function ledgerSubject(
  system: System,
  what: LedgerKind,
  name: string,
  kind: RecoveryKind,
): Promise<Subject> {
  const { mode = 'direct', settings = {}, before, effects } = LEDGERS[what];
  const scene = await LedgerScene.create(system, name, kind, mode, settings);
  if (before !== undefined) {
    await scene.completed();
    await before(scene);
  }
  if (what === 'tolerated' || what === 'held') scene.ledger.refuses.add('m005');
  if (what === 'busy') scene.ledger.busy = 1;
  if (what === 'stale') await terminatedWhileReading(system, scene);
  return {
    scene,
    effects,
    hold: ({ hold }) => scene.ledger.hold(hold),
    logged: () => scene.logged(),
    expectExact: (count) => scene.expectExact(count),
    everything: () => scene.everything(),
    resolve: (batch, verdict) => scene.resolve(batch, verdict),
    relent: () => scene.ledger.refuses.clear(),
  };
}
