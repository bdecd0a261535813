/**
 * `npm run bench [-- --rows 1000000 --tries 3]`: whole runs through a real Temporal server, as ratios to the floor measured in
 * the same run on the same PostgreSQL server. Prints a table, writes bench/RESULTS.md, and exits with 1 below a goal (goals.ts).
 */

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundleWorkflowCode } from '@temporalio/worker';
import { startDevStack, WORKER_ROLE } from '../src/dev/stack.ts';
import { migrate } from '../src/journal/migrate.ts';
import { type EngineMeasured, measureEngine } from './engine.ts';
import { type Floor, fillSource, measureFloor } from './floor.ts';
import { GOALS, hold } from './goals.ts';
import { heldReplays, measureReplay, type Replayed, renderReplay } from './indexing.ts';
import { type Measured, measureRuns } from './runs.ts';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    tries: { type: 'string', default: '3' },
    write: { type: 'boolean', default: true },
    // Replay into one kind of index alone, without the floor and the other runs.
    engine: { type: 'boolean', default: false },
    replay: { type: 'boolean', default: false },
  },
  allowNegative: true,
});
const ROWS = Number(values.rows);
const TRIES = Number(values.tries);

async function main(): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), 'retl-bench-'));
  const stack = await startDevStack({
    projectFolder: process.cwd(),
    dataDir: join(scratch, 'stack'),
    keepData: false,
    notice: (m) => console.log(m),
  });
  try {
    await migrate({ ownerUrl: stack.ownerUrl, runtimeRole: WORKER_ROLE });
    const shop = await stack.createDatabase('shop');
    const workflowsPath = fileURLToPath(new URL('../src/workflows/index.ts', import.meta.url));
    const { code } = await bundleWorkflowCode({ workflowsPath });
    await writeFile(join(scratch, 'workflow-bundle.js'), code);
    await fillSource(shop, ROWS);
    if (values.engine) {
      await measureRuns({ scratch, shop, stack }, 'bench-1', ROWS);
      const engine = await measureEngine(stack.workerUrl, TRIES);
      console.log(engineRows(engine));
      hold([['engine', rateOf(engine)]]);
      return;
    }
    if (values.replay) {
      await measureRuns({ scratch, shop, stack }, 'bench-1', ROWS);
      const replayed = await measureReplay(stack.workerUrl, scratch, TRIES);
      console.log(renderReplay(replayed));
      hold(heldReplays(replayed));
      return;
    }
    console.log(`${ROWS} rows; measuring the floor …`);
    const floor = await measureFloor(shop, scratch, TRIES);
    console.log(floor);
    const runs: Measured[] = [];
    const replayed: Replayed[] = [];
    let engine: EngineMeasured | null = null;
    const bench = { scratch, shop, stack };
    for (let i = 0; i < TRIES; i++) {
      await fillSource(shop, ROWS);
      runs.push(await measureRuns(bench, `bench-${i + 1}`, ROWS));
      console.log(runs.at(-1));
      // The log is that of one mirror still.
      if (i === 0) {
        replayed.push(...(await measureReplay(stack.workerUrl, scratch, TRIES)));
        engine = await measureEngine(stack.workerUrl, TRIES);
      }
    }
    const small = await measureRuns(bench, 'bench-small', ROWS / 10);
    const report =
      render(floor, runs, small) + renderReplay(replayed) + (engine === null ? '' : engineRows(engine));
    console.log(report);
    if (values.write) await writeFile(fileURLToPath(new URL('./RESULTS.md', import.meta.url)), report);
    const { first, unchanged, onePercent, events } = ratiosOf(floor, runs);
    hold([
      ['first', first],
      ['unchanged', unchanged],
      ['onePercent', onePercent],
      ['events', events],
      ['memory', (Math.max(...runs.map((m) => m.peakMb)) - small.peakMb) / Math.max(50, small.peakMb / 4)],
      ...heldReplays(replayed),
      ...(engine === null ? [] : [['engine', rateOf(engine)] as const]),
    ]);
  } finally {
    await stack.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

function medianOf(runs: readonly Measured[], pick: (m: Measured) => number): number {
  return runs.map(pick).sort((x, y) => x - y)[Math.floor(runs.length / 2)] ?? 0;
}

function ratiosOf({ a, b, c, d, e }: Floor, runs: readonly Measured[]) {
  return {
    first: medianOf(runs, (m) => m.first) / (a + b + c + d + e),
    unchanged: medianOf(runs, (m) => m.unchanged) / (a + b + c + d),
    onePercent: medianOf(runs, (m) => m.onePercent) / (a + b + c + d),
    events: medianOf(runs, (m) => m.events),
  };
}

function rateOf({ bulkSeconds, replaySeconds }: EngineMeasured): number {
  return bulkSeconds / replaySeconds;
}

function render(floor: Floor, runs: readonly Measured[], small: Measured): string {
  const median = (pick: (m: Measured) => number) => medianOf(runs, pick);
  const ratio = ratiosOf(floor, runs);
  const [first, unchanged, onePercent] = [
    median((m) => m.first),
    median((m) => m.unchanged),
    median((m) => m.onePercent),
  ];
  const peak = Math.max(...runs.map((m) => m.peakMb));
  const f = (n: number) => n.toFixed(2);
  return `# Bench: last results

\`npm run bench\`, ${new Date().toISOString().slice(0, 10)}: ${ROWS} rows of about 150 bytes, a destination that accepts at once, batches of 1,000, whole
runs through a real Temporal dev server; medians of ${TRIES}. Read the ratios, not the seconds.

Machine: ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB; Node ${process.version}; PostgreSQL 18 (embedded, stock settings);
Temporal ${temporalVersion()}.

| floor (plain SQL and psql COPY, same server) | seconds |
|---|---|
| a: source out, COPY text to nowhere | ${f(floor.a)} |
| b: member rows in, COPY binary, logged, no index | ${f(floor.b)} |
| c: unique index on the hash | ${f(floor.c)} |
| d: full-join diff as counts | ${f(floor.d)} |
| e: membership rows INSERT … SELECT in key order | ${f(floor.e)} |

| whole run | seconds | ratio | goal | aim |
|---|---|---|---|---|
| first mirror | ${f(first)} | ${f(ratio.first)} × (a+b+c+d+e) | ${GOALS.first.value} | 2 |
| unchanged | ${f(unchanged)} | ${f(ratio.unchanged)} × (a+b+c+d) | ${GOALS.unchanged.value} | 1.8 |
| 1 % changed | ${f(onePercent)} | ${f(ratio.onePercent)} × (a+b+c+d) | ${GOALS.onePercent.value} | 2 |

| | |
|---|---|
| Temporal history events of the first mirror | ${median((m) => m.events)} (goal: at most ${GOALS.events.value}) |
| peak memory of the worker, ${ROWS} rows | ${peak} MB |
| peak memory of the worker, ${ROWS / 10} rows | ${small.peakMb} MB (goal: the above at most 25 % or 50 MB more; it is ${Math.round((peak / small.peakMb - 1) * 100)} %, ${peak - small.peakMb} MB) |
| seconds by activity, first mirror | ${runs[0]?.phases ?? ''} |
| unchanged | ${runs[0]?.unchangedPhases ?? ''} |
| 1 % changed | ${runs[0]?.changedPhases ?? ''} |
`;
}

function engineRows(measured: EngineMeasured): string {
  const { documents, bulkSeconds, replaySeconds } = measured;
  const ratio = rateOf(measured);
  return `
| index in OpenSearch 2.19, ${documents} documents | seconds |
|---|---|
| its bulk API, fed from memory | ${bulkSeconds.toFixed(2)} |
| replay of the log, checkpoints and all | ${replaySeconds.toFixed(2)}: ${ratio.toFixed(2)} of that rate (goal: at least ${GOALS.engine.value}) |
`;
}

function temporalVersion(): string {
  try {
    return execFileSync('temporal', ['--version'], { encoding: 'utf8' })
      .trim()
      .replace('temporal version', 'CLI');
  } catch {
    return 'dev server';
  }
}

await main();
