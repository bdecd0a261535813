/** A mirror into a ledger, and what must be true of both at any moment and at the end. */

import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { expect } from 'vitest';
import { type LogPosition, logPosition } from '../../src/domain/ids.ts';
import { decide, parkedRun } from '../../src/journal/approvals.ts';
import { type LogEntry, readEffects, readEntries } from '../../src/journal/log.ts';
import { Ledger, type LedgerMode, replaces } from './ledger.ts';
import type { System } from './system.ts';
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
  async logged(): Promise<ReadonlyMap<string, unknown>> {
    const { journal } = this.system;
    const held = new Map<string, unknown>();
    const runs = new Set((await this.runs()).map(({ run }) => run));
    let position: LogPosition = logPosition(0);
    for (;;) {
      const entries = await readEntries(journal, position, 500);
      for (const entry of entries) {
        position = entry.position;
        if (!runs.has(entry.run.toString()) || entry.kind === 'finish') continue;
        for (const effect of await readEffects(journal, entry)) {
          const row: { readonly id: string } = JSON.parse(effect.payload);
          expect(this.ledger.effects).toContainEqual(
            expect.objectContaining({ action: effect.action, id: row.id, ...keyOf(entry) }),
          );
          if (effect.action === 'upsert') held.set(row.id, row);
          else held.delete(row.id);
        }
      }
      if (entries.length < 500) return held;
    }
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

  /** Somebody approves of what the run would remove. */
  async approve(handle: Handle): Promise<void> {
    await this.untilParked(handle);
    const asked = await parkedRun(this.system.journal, this.mirror);
    if (asked === null) throw new Error('no run is parked');
    const { run, shown } = asked;
    const answer = {
      run,
      shown,
      verdict: 'approved',
      by: 'ann',
      because: 'it is meant',
      via: 'cli',
    } as const;
    expect(await decide(this.system.journal, answer)).toEqual({ kind: 'recorded' });
    await this.signal('resume');
  }

  /** All that the journal and the ledger have on record, to compare. */
  async everything(): Promise<string> {
    const rows = await this.system.rows(
      `select b.batch_id, b.state, b.receipt, b.resends, b.position, r.epoch, r.phase, r.closing
       from retl.run r join retl.mirror m using (mirror_id) left join retl.batch b using (run_id)
       where m.name = $1 order by r.run_id, b.batch_id`,
      [this.mirror],
    );
    const { effects, applied, sessions, finishes } = this.ledger;
    return JSON.stringify([rows, effects, [...applied], [...sessions], [...finishes]]);
  }

  /** The send deadline of everything unknown passes. */
  async passDeadline(): Promise<void> {
    await this.system.rows(
      `update retl.batch b set send_deadline = clock_timestamp() - interval '1 second' from retl.run r join retl.mirror m using (mirror_id)
       where b.run_id = r.run_id and m.name = $1 and b.state = 'unknown'`,
      [this.mirror],
    );
  }

  /** A person finds out what is so, and says it. */
  async resolve(batch: string, verdict: 'accepted' | 'not-applied'): Promise<void> {
    if (verdict === 'not-applied') await this.passDeadline();
    // What was taken for later is accepted once it is done.
    else this.ledger.work();
    await this.system.rows(`select retl.resolve_batch(decode($1, 'hex'), $2, 'it was looked up')`, [
      batch.replace('sha256:', ''),
      verdict,
    ]);
  }
}
