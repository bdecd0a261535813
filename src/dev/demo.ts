/**
 * The demo: a shop's VIP customers are mirrored into an audience API, three times, with a worker killed in the middle of the
 * third run; then the API is read back and compared with what the query returns.
 */

import { mkdir, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Client } from 'pg';
import {
  difference,
  type ExpectedCounts,
  expectedCounts,
  expectedMembers,
  type MemberSet,
  memberSet,
} from './demo/expectation.ts';
import { AudienceApi, startWorker, type WorkerOptions } from './demo/processes.ts';
import { MIRROR, writeProject } from './demo/project.ts';
import type { Screen } from './demo/screen.ts';
import { type Change, CUSTOMERS, changeShop, openShop } from './demo/shop.ts';
import type { DemoTools, MirrorClient, RunCounts, RunProgress } from './demo/tools.ts';
import { signalGroup } from './guarded-child.ts';
import type { Program } from './node-program.ts';
import { type DevStack, startDevStack } from './stack.ts';

export type { DemoTools, MirrorClient } from './demo/tools.ts';

const SECOND_VISIT: Change = { joined: 120, renamed: 80, left: 60 };
const THIRD_VISIT: Change = { joined: 600, renamed: 150, left: 40 };
/** Slow enough that the worker can be killed between two requests of the third run. */
const SLOW_MS = 400;
/** The worker is killed when so many of the additions have arrived. */
const KILL_AFTER = 150;

export interface DemoOptions {
  /** The project's folder; everything is written below its `.retl/demo`. */
  readonly projectFolder: string;
  readonly tools: DemoTools;
  readonly screen: Screen;
  readonly defer: Defer;
}

/** Takes what must be undone at the end, or when the demo is interrupted; undone in reverse order. */
type Defer = (undo: () => Promise<void>) => void;

interface FinishedRun {
  readonly name: string;
  readonly counts: RunCounts;
  readonly seconds: number;
  readonly expected: ExpectedCounts;
}

/** Everything that is up while the demo runs. */
interface Stage {
  readonly options: DemoOptions;
  readonly folder: string;
  readonly stack: DevStack;
  readonly shop: Client;
  readonly client: MirrorClient;
  readonly worker: WorkerOptions;
  api: AudienceApi;
  /** What the audience held after the last run. */
  held: MemberSet;
}

/** Resolves to whether the audience is exactly what the query returns, and every run did exactly what it had to. */
export async function runDemo(options: DemoOptions): Promise<boolean> {
  const { screen } = options;
  const stage = await setUp(options);
  const worker = await startWorkerOn(stage);
  const runs = [await mirror(stage, '1  first mirror')];
  await changeShop(stage.shop, SECOND_VISIT);
  runs.push(await mirror(stage, '2  new, changed and gone'));
  await changeShop(stage.shop, THIRD_VISIT);
  await slowDown(stage);
  // Together, so that a worker that does not come up ends the demo instead of letting the run wait for it.
  const [third] = await Promise.all([mirror(stage, '3  worker killed'), killInTheMiddle(stage, worker)]);
  runs.push(third);
  showRuns(screen, runs);
  return judge(stage, runs);
}

async function setUp(options: DemoOptions): Promise<Stage> {
  const { screen, projectFolder, defer, tools } = options;
  const folder = join(projectFolder, '.retl', 'demo');
  await mkdir(folder, { recursive: true });
  screen.line('Starting PostgreSQL and Temporal …');
  const dataDir = join(folder, 'servers');
  const notice = (message: string): void => screen.line(message);
  const stack = await deferred(startDevStack({ projectFolder, dataDir, keepData: false, notice }), defer);
  await clearOldFiles(folder);
  await tools.migrate({ ownerUrl: stack.ownerUrl });
  const shopUrl = await stack.createDatabase('shop');
  const shop = await openShopDatabase(stack, shopUrl, defer);
  const api = await deferred(AudienceApi.start(folder, 0, 0), defer);
  const environment = {
    RETL_JOURNAL_URL: stack.workerUrl,
    SHOP_URL: readerUrl(shopUrl),
    TEMPORAL_ADDRESS: stack.temporal.address,
  };
  await writeProject(folder, api.url, environment);
  // Never closed: a call under way would break in its retry, and the process ends soon after.
  const client = await tools.connect(stack.temporal.address);
  const worker: WorkerOptions = { projectFolder: folder, logFile: join(folder, 'worker.log'), environment };
  showStage(screen, stack, api, relative(projectFolder, folder));
  return { options, folder, stack, shop, client, worker, api, held: new Map() };
}

/** Its stop is deferred before it is up, so that an interruption in between leaves nothing behind. */
function deferred<T extends { stop(): Promise<void> }>(starting: Promise<T>, defer: Defer): Promise<T> {
  defer(async () => (await starting.catch(() => null))?.stop());
  return starting;
}

/** Of an earlier demo. Servers are up and the lock is held, so no other demo uses them. */
async function clearOldFiles(folder: string): Promise<void> {
  for (const name of ['audiences.json', 'audience-api.log', 'worker.log', 'mirrors', 'retl.yaml', '.env']) {
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

const READER = 'shop_reader';

/** The mirror reads as a role that can do nothing else. */
async function openShopDatabase(stack: DevStack, shopUrl: string, defer: Defer): Promise<Client> {
  const shop = new Client({ connectionString: shopUrl });
  shop.on('error', () => undefined);
  await shop.connect();
  defer(() => shop.end().catch(() => undefined));
  const admin = new Client({ connectionString: stack.adminUrl });
  await admin.connect();
  await admin.query(`CREATE ROLE ${READER} LOGIN PASSWORD '${new URL(shopUrl).password}'`);
  await admin.query(`GRANT CONNECT ON DATABASE shop TO ${READER}`);
  await admin.end();
  await openShop(shop, READER);
  return shop;
}

function readerUrl(shopUrl: string): string {
  const url = new URL(shopUrl);
  url.username = READER;
  return url.href;
}

function showStage(screen: Screen, stack: DevStack, api: AudienceApi, folder: string): void {
  screen.fact('PostgreSQL', `127.0.0.1:${new URL(stack.adminUrl).port}, ${CUSTOMERS} customers in the shop`);
  screen.fact('Temporal', stack.temporal.address);
  screen.fact('Temporal UI', stack.temporal.uiUrl ?? 'of that server');
  screen.fact('Audience API', api.url);
  screen.fact('Configuration and logs', folder);
  screen.line();
}

async function startWorkerOn(stage: Stage): Promise<Program> {
  const worker = await deferred(startWorker(stage.worker), stage.options.defer);
  stage.options.screen.fact('Worker', `process ${worker.child.pid}, in the journal as the restricted role`);
  return worker;
}

/** The same address and the same audience, but every request takes its time. */
async function slowDown(stage: Stage): Promise<void> {
  const { port } = stage.api;
  await stage.api.stop();
  stage.api = await deferred(AudienceApi.start(stage.folder, port, SLOW_MS), stage.options.defer);
  stage.options.screen.fact('Audience API', `is slow now: ${SLOW_MS} ms a request`);
}

async function mirror(stage: Stage, name: string): Promise<FinishedRun> {
  const { screen } = stage.options;
  const wanted = await expectedMembers(stage.shop);
  const expected = expectedCounts(stage.held, wanted);
  screen.line();
  screen.line(`Run ${name}`);
  const startedAt = Date.now();
  const counts = await stage.client.run(MIRROR, (progress) =>
    screen.progress(progress.phase, inWords(progress)),
  );
  stage.held = memberSet(await stage.api.members());
  const off = difference(wanted, stage.held);
  const seconds = (Date.now() - startedAt) / 1000;
  screen.fact(
    'done',
    `${stage.held.size} members in the audience, ${wanted.size} in the query (${describe(off)})`,
  );
  return { name, counts, seconds, expected };
}

function inWords({ counts, waiting }: RunProgress): string {
  const planned = counts.toAdd + counts.toChange + counts.toRemove;
  const text =
    planned === 0
      ? ''
      : `added ${counts.added}/${counts.toAdd}, changed ${counts.changed}/${counts.toChange}, ` +
        `removed ${counts.removed}/${counts.toRemove}`;
  return waiting === null ? text : `${text} (waiting: ${waiting})`;
}

/** Waits until some, but not all, additions have arrived at the API, kills the worker there and starts another. */
async function killInTheMiddle(stage: Stage, worker: Program): Promise<void> {
  const before = stage.held.size;
  let arrived = 0;
  while (arrived < KILL_AFTER) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    arrived = (await stage.api.members()).length - before;
  }
  signalGroup(worker.child.process, 'SIGKILL');
  await worker.child.exited;
  if (arrived >= THIRD_VISIT.joined) throw new Error('the worker was killed too late to prove anything');
  stage.options.screen.fact(
    'SIGKILL',
    `worker ${worker.child.pid} is dead; ${arrived} new members had arrived`,
  );
  await startWorkerOn(stage);
  stage.options.screen.fact('', 'goes on when Temporal misses the dead worker’s heartbeat (10 s)');
}

function showRuns(screen: Screen, runs: readonly FinishedRun[]): void {
  screen.line();
  screen.table(
    ['run', 'added', 'changed', 'removed', 'unchanged', 'seconds'],
    runs.map(({ name, counts, seconds }) => [
      name,
      counts.added,
      counts.changed,
      counts.removed,
      counts.unchanged,
      seconds.toFixed(1),
    ]),
  );
  screen.line();
}

/** Reads the API back once more, and holds the runs' own counts against what they had to do. */
async function judge(stage: Stage, runs: readonly FinishedRun[]): Promise<boolean> {
  const { screen } = stage.options;
  const off = difference(await expectedMembers(stage.shop), memberSet(await stage.api.members()));
  const isExact = off.missing + off.leftOver + off.different === 0;
  const miscounted = runs.filter(({ counts, expected }) => !sameCounts(counts, expected));
  for (const { name, expected } of miscounted) {
    screen.line(`MISMATCH  run ${name} should have counted ${JSON.stringify(expected)}`);
  }
  screen.line(
    isExact
      ? 'The audience, read back over HTTP, holds exactly what the query returns.'
      : `MISMATCH  the audience is not what the query returns: ${describe(off)}`,
  );
  return isExact && miscounted.length === 0;
}

function sameCounts(counts: RunCounts, expected: ExpectedCounts): boolean {
  return (
    counts.added === expected.added &&
    counts.changed === expected.changed &&
    counts.removed === expected.removed &&
    counts.unchanged === expected.unchanged
  );
}

function describe({ missing, leftOver, different }: ReturnType<typeof difference>): string {
  return `${missing} missing, ${leftOver} left over, ${different} different`;
}
