/** How a cell of the matrix comes to its end, once something has happened at its point: as a person would see to it. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandleWithFirstExecutionRunId as Handle } from '@temporalio/client';
import { expect } from 'vitest';
import type { RecoveryKind } from '../support/ledger-scene.ts';
import { approve, passDeadline } from '../support/system-people.ts';
import { completedBy, ending } from '../support/system-scene.ts';
import type { Row, Said } from './row.ts';
import type { Subject } from './subject.ts';

export interface Cell {
  readonly row: Row;
  readonly kind: RecoveryKind;
}

/** A mirror that stands at its point. */
export interface Stand extends Cell {
  readonly subject: Subject;
  readonly handle: Handle;
  /** What was said of it, as an update; null where it was no update. */
  readonly said: Promise<unknown> | null;
  /** Lets go on what is held, where somebody still waits for it. */
  release(): void;
}

type End = 'goes on' | 'waits for the send deadline' | 'blocked, then resolved' | 'written late, or the same';

export interface Result extends Cell {
  readonly end: End;
  readonly ms: number;
  /** What was wrong; null where nothing was. */
  readonly problem: string | null;
}

/**
 * What design.md section 6 says of a request on its way, by the kind of the destination. A worker that lives writes a receipt as
 * soon as its journal is back; one that has tried for too long leaves the request unknown, as if it had died.
 */
export function endOf({ row, kind }: Cell): End {
  if (row.onItsWay === null || kind === 'idempotent') return 'goes on';
  if (row.fate === 'journal') return 'written late, or the same';
  if (kind === 'manual') return 'blocked, then resolved';
  return row.onItsWay === 'applied' ? 'goes on' : 'waits for the send deadline';
}

/** Takes a mirror to its end. */
export async function toItsEnd(stand: Stand): Promise<Result> {
  const { row, kind } = stand;
  const begun = performance.now();
  const end = endOf(stand);
  let problem: string | null = null;
  try {
    await unblocked(stand, end);
    await inTime(ended(stand));
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
  }
  return { row, kind, end, ms: performance.now() - begun, problem };
}

async function ended(stand: Stand): Promise<void> {
  const { row, subject, handle, said } = stand;
  if (row.said !== null) {
    await said;
    return afterWord(stand, row.said);
  }
  if (row.scene === 'parked' || row.scene === 'resumed') await approve(subject.scene);
  if (row.scene === 'held') await heldThenMended(stand);
  else await completedBy(handle);
  await subject.expectExact(subject.effects);
}

/** Four of six are missing from the source, and a person has said what is to be made of that. */
async function afterWord({ subject, handle }: Stand, said: Said): Promise<void> {
  const { scene, effects } = subject;
  if (said === 'approve') {
    await completedBy(handle);
    return subject.expectExact(effects);
  }
  expect(await ending(handle)).toMatchObject(
    said === 'reject'
      ? { kind: 'failed', type: 'guard-held' }
      : { kind: 'result', result: { outcome: said === 'abort' ? 'aborted' : 'cancelled' } },
  );
  // Cancelled, it is resumed: who is missing from what was sealed is removed, and others are added by the run that follows.
  const four = said === 'cancel' ? 'm90' : 'm00';
  await scene.exec(`insert into $table select '${four}' || n, 'vip' from generate_series(1, 4) n`);
  const next = await scene.start();
  if (said === 'cancel') await approve(scene);
  await completedBy(next);
  await subject.expectExact(said === 'cancel' ? effects + 4 : effects - 4);
}

/** It delivers everybody else, and ends as rejected; the next run delivers the one, whom the destination takes by then. */
async function heldThenMended({ subject, handle }: Stand): Promise<void> {
  expect(await ending(handle)).toMatchObject({ kind: 'failed', type: 'rejected' });
  subject.relent();
  await subject.scene.completed();
}

const PATIENCE_MS = 150_000;

async function inTime(work: Promise<unknown>): Promise<void> {
  const stop = new AbortController();
  const late = sleep(PATIENCE_MS, undefined, { signal: stop.signal }).then(() => {
    throw new Error('it does not come to an end');
  });
  await Promise.race([work, late]).finally(() => stop.abort());
}

async function unblocked({ row, subject, handle }: Stand, end: End): Promise<void> {
  if (end === 'goes on') return;
  const { scene } = subject;
  const { waiting } = await scene.until(handle, ({ phase, waiting: w }) => {
    const early = w?.code === 'before-send-deadline';
    if (end === 'written late, or the same') return phase === 'closed' || early || w?.kind === 'blocked';
    return end === 'blocked, then resolved' ? w?.kind === 'blocked' : early;
  });
  if (waiting === null) return;
  // At every moment at which somebody looks, the journal says no more than is so.
  await subject.logged();
  const batch = waiting.batch ?? '';
  expect(batch).toMatch(/^sha256:/);
  if (waiting.kind === 'blocked') {
    await subject.resolve(batch, row.onItsWay === 'applied' ? 'accepted' : 'not-applied');
  } else await passDeadline(scene);
  await scene.signal('resume');
}
