/** Whole runs of one mirror through a worker process of its own and a real Temporal server, timed from outside. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { heapLimit } from '../src/cli/worker-process.ts';
import type { startDevStack } from '../src/dev/stack.ts';
import { MIRROR_WORKFLOW, type MirrorResult, TASK_QUEUE } from '../src/domain/messages.ts';
import { onServer } from './floor.ts';

/** Seconds, unless it says otherwise. */
export interface Measured {
  readonly first: number;
  readonly unchanged: number;
  readonly onePercent: number;
  readonly events: number;
  readonly peakMb: number;
  readonly phases: string;
  readonly changedPhases: string;
  readonly unchangedPhases: string;
}

export interface Bench {
  readonly scratch: string;
  readonly shop: string;
  readonly stack: Awaited<ReturnType<typeof startDevStack>>;
}

/** First mirror, unchanged rerun, 1 % changed, in one worker process. */
export async function measureRuns(bench: Bench, mirror: string, rows: number): Promise<Measured> {
  const project = join(bench.scratch, mirror);
  await writeProject(project, mirror, rows);
  const worker = spawn(
    process.execPath,
    [
      ...heapLimit(),
      ...(process.env.BENCH_PROF ? ['--cpu-prof', '--cpu-prof-dir', process.env.BENCH_PROF] : []),
      '--import',
      'tsx',
      fileURLToPath(new URL('./worker.ts', import.meta.url)),
    ],
    {
      env: {
        ...process.env,
        NODE_ENV: 'production',
        BENCH_BUNDLE: join(bench.scratch, 'workflow-bundle.js'),
        RETL_PROJECT: project,
        RETL_JOURNAL_URL: bench.stack.workerUrl,
        SHOP_URL: bench.shop,
        TEMPORAL_ADDRESS: bench.stack.temporal.address,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const ended = once(worker, 'exit').then(() => Promise.reject(new Error('the worker ended')));
  ended.catch(() => undefined); // at the end of the runs nobody waits for it any more
  await Promise.race([once(createInterface({ input: worker.stdout }), 'line'), ended]);
  const connection = await Connection.connect({ address: bench.stack.temporal.address });
  try {
    const client = new Client({ connection });
    const first = await timedRun(client, mirror);
    const unchanged = await timedRun(client, mirror);
    await onServer(bench.shop, (c) =>
      c.query("update customers set plan = plan || '!' where id % 100 = 7 and id <= $1", [rows]),
    );
    const changed = await timedRun(client, mirror);
    const status = await readFile(`/proc/${worker.pid}/status`, 'utf8').catch(() => '');
    return {
      first: first.seconds,
      unchanged: unchanged.seconds,
      onePercent: changed.seconds,
      events: first.events,
      peakMb: Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024),
      phases: first.phases,
      changedPhases: changed.phases,
      unchangedPhases: unchanged.phases,
    };
  } finally {
    await connection.close();
    worker.kill('SIGTERM');
    await ended.catch(() => undefined);
  }
}

async function timedRun(client: Client, mirror: string) {
  const start = performance.now();
  const handle = await client.workflow.start(MIRROR_WORKFLOW, {
    workflowId: `mirror/${mirror}`,
    taskQueue: TASK_QUEUE,
    args: [{ mirror }],
  });
  const result: MirrorResult = await handle.result();
  const seconds = (performance.now() - start) / 1000;
  if (result.outcome !== 'completed') throw new Error(`the run ended as ${result.outcome}`);
  const { events } = await handle.fetchHistory();
  return { seconds, events: events?.length ?? 0, phases: phasesOf(events ?? []) };
}

type Events = NonNullable<
  Awaited<ReturnType<ReturnType<Client['workflow']['getHandle']>['fetchHistory']>>['events']
>;

/** Seconds of each activity type, from scheduled to completed. */
function phasesOf(events: Events): string {
  const at = (time: { seconds?: unknown; nanos?: number | null } | null | undefined) =>
    Number(time?.seconds ?? 0) + (time?.nanos ?? 0) / 1e9;
  const scheduled = new Map<string, { name: string; at: number }>();
  const spent = new Map<string, number>();
  for (const e of events) {
    const s = e.activityTaskScheduledEventAttributes;
    if (s) scheduled.set(String(e.eventId), { name: s.activityType?.name ?? '?', at: at(e.eventTime) });
    const c = e.activityTaskCompletedEventAttributes;
    const begun = c ? scheduled.get(String(c.scheduledEventId)) : undefined;
    if (begun) spent.set(begun.name, (spent.get(begun.name) ?? 0) + at(e.eventTime) - begun.at);
  }
  return [...spent].map(([name, s]) => `${name} ${s.toFixed(1)}`).join(', ');
}

async function writeProject(folder: string, mirror: string, rows: number): Promise<void> {
  await mkdir(join(folder, 'mirrors'), { recursive: true });
  await writeFile(
    join(folder, 'retl.yaml'),
    `journal: { url: "\${env:RETL_JOURNAL_URL}" }
connections:
  shop: { type: postgres, url: "\${env:SHOP_URL}" }
  sink: { type: accept, name: ${mirror} }
`,
  );
  await writeFile(
    join(folder, 'mirrors', `${mirror}.yaml`),
    `source:
  connection: shop
  query: select id, email, plan, note, updated_at from customers where id <= ${rows}
  key: [id]
members:
  - identity: { email: email }
    payload: { note: note, plan: plan, seen_at: updated_at }
destination: { connection: sink, type: accept }
baseline: new-empty
batch: { rows: 1000, bytes: 1MB, in_flight: 4 }
`,
  );
}
