/** What a schedule makes of an outage of Temporal itself. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectClient, type TemporalClient } from '../../src/client/connect.ts';
import { applySchedule, readSchedule, type Schedule } from '../../src/client/schedules.ts';
import { startTemporalServer, type TemporalServer } from '../../src/dev/temporal-server.ts';
import type { ScheduleSettings } from '../../src/domain/schedule.ts';
import { retl } from '../cli/support.ts';
import { MIRROR, PROJECT } from '../config/support.ts';
import { createTestProject } from '../support/project.ts';

let folder: string;
let server: TemporalServer;
beforeAll(async () => {
  delete process.env.TEMPORAL_ADDRESS;
  folder = await mkdtemp(join(tmpdir(), 'retl-missed-'));
  server = await start();
});
afterAll(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** State that outlives the server. */
function start(): Promise<TemporalServer> {
  return startTemporalServer({
    projectFolder: resolve(import.meta.dirname, '..', '..'),
    folder,
    state: 'file',
    ports: { grpc: 17233, ui: 18233 },
    notice: () => undefined,
  });
}

async function connected<T>(work: (temporal: TemporalClient) => Promise<T>): Promise<T> {
  const temporal = await connectClient({
    profile: null,
    address: server.address,
    namespace: null,
    taskQueue: 'nobody',
  });
  return work(temporal).finally(() => temporal.close());
}

async function until(holds: (schedule: Schedule) => boolean): Promise<Schedule> {
  for (const end = Date.now() + 30_000; Date.now() < end; await sleep(200)) {
    const schedule = await connected((temporal) => readSchedule(temporal, 'vip'));
    if (schedule !== null && holds(schedule)) return schedule;
  }
  throw new Error('the schedule did not come to that');
}

const EVERY_SECOND: ScheduleSettings = {
  times: { kind: 'every', everyMs: 1_000 },
  jitterMs: 0,
  overlap: 'skip',
  catchUpMs: 10_000,
  pauseOnFailure: false,
};

test('skipped-runs: starts that an outage makes later than the catch-up window are counted and shown', async () => {
  await connected((temporal) =>
    applySchedule(temporal, 'vip', EVERY_SECOND, { dryRun: false, takeOver: false }),
  );
  await until(({ counts }) => counts.started === 1);
  await server.stop();
  await sleep(14_000);
  server = await start();
  const { counts } = await until((schedule) => schedule.counts.missed > 0);
  // What was missed for less than the window was made up for, under the overlap policy: skipped beside the run under way.
  expect(counts.started).toBe(1);
  expect(counts.skipped).toBeGreaterThan(0);
  const project = await createTestProject({
    'retl.yaml': `temporal: { task_queue: nobody }\n${PROJECT}`,
    'mirrors/vip.yaml': `${MIRROR}schedule: { every: 1s, catch_up: 10s }\n`,
  });
  const { stdout } = await retl(['schedules', 'list'], {
    cwd: project.folder,
    env: { TEMPORAL_ADDRESS: server.address },
  });
  expect(stdout).toMatch(/^vip +every 1s +active +in \ds +running +\d+s ago +1 +\d+ +[1-9]\d*$/m);
  await project.remove();
});
