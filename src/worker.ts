/**
 * The worker: the composition root. It puts configuration, journal, adapters and Temporal together, and polls until it is
 * told to stop. It also does one thing and ends: `--index <verb> …` what `retl index` asks, `--check [mirror …]` finds out what can
 * be found out beforehand, `--plan <mirror>` what a run would do, `--baseline <order>` sees to what a target held before.
 *
 *   RETL_PROJECT        folder of retl.yaml (or --project; default: the current folder)
 *   RETL_METRICS        address to answer Prometheus on, or `off` (or --metrics; default: `metrics` of retl.yaml)
 *   RETL_METRICS_EVERY  how often the journal is looked at for metrics, such as 1m (default: 15s)
 *   TEMPORAL_*          Temporal's own environment configuration
 *   RETL_WORKFLOW_BUNDLE  file with the workflows' code, where it was bundled elsewhere from these very sources
 */

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { noopMetricMeter } from '@temporalio/common';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { DefaultLogger, NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import type { Dependencies } from './activities/deps.ts';
import { createActivities } from './activities/index.ts';
import { createIndexActivities, wakeIndexes } from './activities/index-follow.ts';
import { createMaintenanceActivities } from './activities/maintain.ts';
import { RunMetrics } from './activities/run-metrics.ts';
import { expectValid, loadBase } from './config/load.ts';
import { metricsPace, resolveMetrics } from './config/metrics-schema.ts';
import { inProjectFile, resolveTemporal, resolveText, secretsOf } from './config/secrets.ts';
import { RetlError } from './domain/errors.ts';
import { RUN_ATTRIBUTES } from './domain/messages.ts';
import type { TemporalSettings } from './domain/settings.ts';
import { temporalPlace } from './domain/temporal-place.ts';
import { logHead } from './journal/log.ts';
import { requireSchema } from './journal/migrate.ts';
import { openJournal } from './journal/pool.ts';
import { baseline } from './worker-baseline.ts';
import { check, plan } from './worker-check.ts';
import { indexDependencies, indexVerb } from './worker-index.ts';
import { IndexWatch } from './worker-index-metrics.ts';
import { writeEntry } from './worker-log.ts';
import { installRuntime, JournalWatch } from './worker-metrics.ts';
import { requireOwnQueue, workerIdentity } from './worker-queue.ts';
import { configurationOf, DESTINATIONS, SOURCES, type WorkerSetup } from './worker-setup.ts';

/**
 * Extractions may last for hours, each with a connection of its own to the journal: for all that may run at once there is
 * one, and some to spare, so that no short step waits behind long ones. Further activities wait in Temporal.
 */
const ACTIVITIES_AT_ONCE = 24;
const SPARE_CONNECTIONS = 12;
const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;

/**
 * Runs a worker until it is told to stop; `ready` is called once it polls. Its metrics go where the SDK's runtime of this process
 * was told to have them.
 */
export async function runWorker(setup: WorkerSetup, ready: () => void): Promise<void> {
  const base = expectValid(await loadBase(setup.projectDir));
  const { env, readFile } = secretsOf(setup.projectDir);
  const journal = openJournal({
    url: resolveText(base.journal.url, env, readFile, inProjectFile('journal.url')),
    max: ACTIVITIES_AT_ONCE + SPARE_CONNECTIONS,
  });
  const temporal = resolveTemporal(base.temporal, { env, readFile });
  const connection = await connect(temporal);
  const meter = Runtime.instance().metricMeter;
  const metrics = new RunMetrics(meter);
  const indexes = indexDependencies(setup, journal);
  const beside = new IndexWatch(indexes, meter, setup.logger);
  const watch = new JournalWatch(journal, meter, metrics, setup.logger, setup.metricsEveryMs, beside);
  let stopWatching = async () => {};
  try {
    await requireSchema(journal);
    const { logId } = await logHead(journal);
    const { namespace } = connection;
    await requireOwnQueue(connection.native, { namespace, taskQueue: temporal.taskQueue }, logId);
    const dependencies: Dependencies = {
      committed: () => wakeIndexes(indexes.names),
      journal,
      sources: SOURCES,
      destinations: setup.destinations,
      configuration: configurationOf(setup),
      logger: setup.logger,
      metrics,
      cluster: await clusterId(connection.native),
      searchAttributes: await hasAttributes(connection.native, connection.namespace),
    };
    const worker = await Worker.create({
      connection: connection.native,
      namespace,
      identity: workerIdentity(logId),
      taskQueue: temporal.taskQueue,
      ...workflowCode(setup.workflowBundle),
      activities: {
        ...createActivities(dependencies),
        ...createIndexActivities(indexes),
        ...createMaintenanceActivities({
          runs: dependencies,
          retention: async () => expectValid(await loadBase(setup.projectDir)).maintenance,
        }),
      },
      maxConcurrentActivityTaskExecutions: ACTIVITIES_AT_ONCE,
      maxHeartbeatThrottleInterval: '2 seconds',
      defaultHeartbeatThrottleInterval: '2 seconds',
      shutdownGraceTime: '1 second',
      shutdownForceTime: '1 minute',
    });
    // Without an exporter nobody would hear of it.
    if (meter !== noopMetricMeter) stopWatching = watch.start();
    const running = worker.run();
    ready();
    await running;
  } finally {
    await stopWatching();
    await connection.native.close();
    await journal.end();
  }
}

/** Prebuilt where the project was built; bundled at start from the sources otherwise. */
function workflowCode(given?: string): Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath'> {
  const bundle = given ?? fileURLToPath(new URL('./workflow-bundle.js', import.meta.url));
  if (given !== undefined || existsSync(bundle)) return { workflowBundle: { codePath: bundle } };
  return { workflowsPath: fileURLToPath(new URL('./workflows/index.ts', import.meta.url)) };
}

interface Connected {
  readonly native: NativeConnection;
  readonly namespace: string;
}

async function connect(settings: TemporalSettings): Promise<Connected> {
  const { options, address, namespace } = temporalPlace(settings, loadClientConnectConfig);
  try {
    return { native: await NativeConnection.connect({ ...options, address }), namespace };
  } catch {
    throw new RetlError('temporal.connect', { address, namespace });
  }
}

/** Tells clusters apart, so that "not found" is believed of the right one only; `''` where it is not told. */
async function clusterId(connection: NativeConnection): Promise<string> {
  try {
    return (await connection.workflowService.getClusterInfo({})).clusterId ?? '';
  } catch {
    return '';
  }
}

async function hasAttributes(connection: NativeConnection, namespace: string): Promise<boolean> {
  try {
    const found = await connection.operatorService.listSearchAttributes({ namespace });
    return Object.values(RUN_ATTRIBUTES).every((name) => name in (found.customAttributes ?? {}));
  } catch {
    return false; // not allowed to ask: the workflow does without
  }
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      project: { type: 'string' },
      check: { type: 'boolean', default: false },
      plan: { type: 'string' },
      identities: { type: 'string' },
      index: { type: 'boolean', default: false },
      metrics: { type: 'string' },
      baseline: { type: 'string' },
    },
  });
  const logger = new DefaultLogger('WARN', writeEntry);
  const bundle = process.env.RETL_WORKFLOW_BUNDLE;
  const setup: WorkerSetup = {
    projectDir: resolve(values.project ?? process.env.RETL_PROJECT ?? '.'),
    destinations: DESTINATIONS,
    ...(bundle === undefined || bundle === '' ? {} : { workflowBundle: bundle }),
    logger: { info: (m, f) => logger.info(m, f), warn: (m, f) => logger.warn(m, f) },
    metricsEveryMs: metricsPace(process.env.RETL_METRICS_EVERY),
  };
  if (values.index) return (await indexVerb(setup, positionals)) ? 0 : EXIT_FAILURE;
  if (values.plan !== undefined) return plan(setup, values.plan, values.identities);
  if (values.baseline !== undefined) return baseline(setup, values.baseline);
  if (values.check) return (await check(setup, positionals)) ? 0 : EXIT_USAGE;
  const { metrics } = expectValid(await loadBase(setup.projectDir));
  const said = values.metrics ?? process.env.RETL_METRICS;
  installRuntime(resolveMetrics(metrics, secretsOf(setup.projectDir), said), logger);
  await runWorker(setup, () => process.stdout.write(`${JSON.stringify({ ready: true })}\n`));
  return 0;
}

if (process.argv[1] !== undefined && import.meta.filename === resolve(process.argv[1])) {
  main().then(
    (code) => {
      process.exitCode = code;
    },
    (error: unknown) => {
      // A driver's words may hold secrets: only this project's own are printed.
      const words =
        error instanceof RetlError
          ? error.message
          : `the worker ended (${error instanceof Error ? error.name : 'error'})`;
      process.stderr.write(`${words}\n`);
      process.exitCode = error instanceof RetlError && error.recourse === 'fix' ? EXIT_USAGE : EXIT_FAILURE;
    },
  );
}
