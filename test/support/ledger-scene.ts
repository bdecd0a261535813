/** A mirror into a ledger, and what must be true of both at any moment and at the end. */

import { expect } from 'vitest';
import type { LogEntry } from '../../src/journal/log.ts';
import { Ledger, type LedgerMode, replaces } from './ledger.ts';
import type { System } from './system.ts';
import { heldByLog, passDeadline, recordOf } from './system-people.ts';
import { Scene, tableOf } from './system-scene.ts';

export type RecoveryKind = 'idempotent' | 'lookup' | 'manual';

/** As src/dev/node-program.ts finds it. */
export const LEDGER_WORKER = '../test/support/ledger-adapter';

const ROWS = 6;

/** Nobody has asked for the removals of a replacement: they are the finish's. */
function keyOf(entry: LogEntry): { readonly key?: string } {
  return entry.kind === 'removals' ? {} : { key: entry.batch };
}

export class LedgerScene extends Scene {
  private constructor(
    system: System,
    mirror: string,
    table: string,
    readonly ledger: Ledger,
    readonly kind: RecoveryKind,
  ) {
    super(system, mirror, table);
  }

  static async create(
    system: System,
    name: string,
    kind: RecoveryKind,
    mode: LedgerMode = 'direct',
    more: { readonly [section: string]: unknown } = {},
  ): Promise<LedgerScene> {
    const ledger = await Ledger.start(kind === 'idempotent');
    system.defer(() => ledger.stop());
    const scene = new LedgerScene(system, name, tableOf(name), ledger, kind);
    await scene.createSource(ROWS);
    await system.connect(`${name}-ledger`, { type: 'ledger', base_url: ledger.url });
    await scene.write(
      { connection: `${name}-ledger`, recovery: kind, mode },
      {
        mirror: {
          batch: { rows: 3, in_flight: 1 },
          ...more,
          ...(replaces(mode)
            ? { strategy: 'native-replace', safety: { max_removals: '50%', empty_snapshot: 'hold' } }
            : {}),
        },
      },
    );
    return scene;
  }

  /** Replays the log: it says nothing that the ledger has not accepted, at whatever moment one looks. */
  logged(): Promise<ReadonlyMap<string, unknown>> {
    return heldByLog(this, (entry, action, { id }) => {
      const effect = { action, id, ...keyOf(entry) };
      expect(this.ledger.effects).toContainEqual(expect.objectContaining(effect));
    });
  }

  /** Complete: the ledger is what the query returns, the log says the same, and nothing was done twice. */
  async expectExact(effects: number): Promise<void> {
    const all = await this.wanted();
    const wanted = new Map([...all].filter(([id]) => !this.ledger.refuses.has(id)));
    expect(this.ledger.members).toEqual(wanted);
    expect(await this.logged()).toEqual(wanted);
    const { ledger } = this;
    expect(ledger.effects).toHaveLength(effects);
    const removed = ledger.effects.filter((e) => e.action === 'remove').map((e) => e.id);
    expect(removed.filter((id) => wanted.has(id))).toEqual([]);
    const completed = (await this.runs()).filter((run) => run.closing === 'completed');
    expect(ledger.finishes.size).toBe(completed.length);
    if (this.kind === 'idempotent') return;
    for (const book of [ledger.arrived, ledger.applied, ledger.sessions, ledger.finishes])
      expect([...book].filter(([, times]) => times > 1)).toEqual([]);
  }

  /** All that the journal and the ledger have on record, to compare. */
  async everything(): Promise<string> {
    const { effects, applied, sessions, finishes } = this.ledger;
    return JSON.stringify([await recordOf(this), effects, [...applied], [...sessions], [...finishes]]);
  }

  /** A person finds out what is so, and says it. */
  async resolve(batch: string, verdict: 'accepted' | 'not-applied'): Promise<void> {
    if (verdict === 'not-applied') await passDeadline(this);
    // What was taken for later is accepted once it is done.
    else this.ledger.work();
    await this.system.rows(`select retl.resolve_batch(decode($1, 'hex'), $2, 'it was looked up')`, [
      batch.replace('sha256:', ''),
      verdict,
    ]);
  }
}
