/** Schedules and the journal: no two runs of a mirror go on at once, however each was started. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { outcomeOf, triggerSchedule } from '../../src/client/schedule-runs.ts';
import { applySchedule, readSchedule, type Schedule } from '../../src/client/schedules.ts';
import type { ScheduleSettings } from '../../src/domain/schedule.ts';
import { System } from '../support/system.ts';
import { HttpScene } from '../support/system-destinations.ts';
import { completedBy } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

const DAILY: ScheduleSettings = {
  times: { kind: 'every', everyMs: 86_400_000 },
  jitterMs: 0,
  overlap: 'skip',
  catchUpMs: 3_600_000,
  pauseOnFailure: false,
};

async function scheduled(mirror: string, settings = DAILY): Promise<Schedule> {
  await applySchedule(system.temporal, mirror, settings, { dryRun: false, takeOver: false });
  return there(mirror);
}

async function there(mirror: string): Promise<Schedule> {
  const schedule = await readSchedule(system.temporal, mirror);
  if (schedule === null) throw new Error(`no schedule of ${mirror}`);
  return schedule;
}

async function until(mirror: string, holds: (schedule: Schedule) => boolean): Promise<Schedule> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(200)) {
    const schedule = await there(mirror);
    if (holds(schedule)) return schedule;
  }
  throw new Error(`the schedule of ${mirror} did not come to that`);
}

/** Waits until what the schedule has started last is over. */
function ended(mirror: string): Promise<Schedule> {
  return until(mirror, ({ lastStart, running }) => lastStart !== null && running.length === 0);
}

async function lastOutcome({ mirror, lastStart }: Schedule): Promise<string> {
  return lastStart === null ? 'none' : outcomeOf(system.temporal, mirror, lastStart);
}

test('a schedule mirrors as a run by hand does, and a run by hand goes on after it', async () => {
  const scene = await HttpScene.create(system, 'by-schedule', { rows: 10 });
  const started = await triggerSchedule(system.temporal, await scheduled('by-schedule'));
  expect(started).toEqual({
    kind: 'started',
    workflowId: expect.stringMatching(/^mirror\/by-schedule-\d{4}-/),
  });
  expect(await lastOutcome(await ended('by-schedule'))).toBe('completed');
  expect(scene.audience.state.members).toEqual(await scene.wanted());
  await scene.completed();
  expect(scene.audience.state.effects).toHaveLength(10);
});

test('skipped-runs: a scheduled run that meets one started by hand is refused by the journal, not skipped by Temporal', async () => {
  const scene = await HttpScene.create(system, 'by-hand-first', { rows: 10 });
  scene.audience.fault({ kind: 'delay', ms: 5_000 });
  const byHand = await scene.start();
  await scene.untilSeen(1);
  const before = await scheduled('by-hand-first', { ...DAILY, pauseOnFailure: true });
  expect(await triggerSchedule(system.temporal, before)).toMatchObject({ kind: 'started' });
  const after = await ended('by-hand-first');
  expect(await lastOutcome(after)).toBe('refused');
  expect(after.counts).toEqual({ started: 1, skipped: 0, missed: 0 });
  expect(after).toMatchObject({ paused: true, note: expect.stringContaining('run.busy') });
  await completedBy(byHand);
  expect(scene.audience.state.effects).toHaveLength(10);
});

test('skipped-runs: a start that meets a run of the same schedule is skipped, and the run by hand is refused', async () => {
  const scene = await HttpScene.create(system, 'by-schedule-first', { rows: 10 });
  scene.audience.fault({ kind: 'delay', ms: 5_000 });
  const everySecond = { ...DAILY, times: { kind: 'every', everyMs: 1_000 } } as const;
  await scheduled('by-schedule-first', everySecond);
  await scene.untilSeen(1);
  expect(await scene.run()).toMatchObject({ kind: 'failed', type: 'refused' });
  await until('by-schedule-first', ({ counts }) => counts.skipped > 0);
  // No second run, which would be another start, once this one has ended.
  await scheduled('by-schedule-first');
  const after = await ended('by-schedule-first');
  expect(after.counts.started).toBe(1);
  expect(await lastOutcome(after)).toBe('completed');
  expect(scene.audience.state.effects).toHaveLength(10);
});
