/**
 * Mirrors of every kind run against destinations that lie, while everything is killed at random; then every destination is
 * compared with its query. `npm run test:chaos` plays for ten minutes, or RETL_CHAOS_MINUTES; RETL_CHAOS_SEED repeats the choices,
 * though not the moments at which processes meet them.
 */

import { appendFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { endingOf } from '../../src/client/failure.ts';
import { retl } from '../cli/support.ts';
import { useStore } from '../contract/destination-s3-kit.ts';
import { Servers } from '../support/servers.ts';
import { System } from '../support/system.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { Chaos, type World } from './chaos.ts';
import { Crew } from './crew.ts';
import { Dice } from './dice.ts';
import { calm, finale, verify, wordsOf } from './finale.ts';
import type { Lane } from './lane.ts';
import { APIS, apiLane, SALESFORCE_ENV, salesforceLane } from './lanes-api.ts';
import { storeLane, TABLES, tableLane } from './lanes-store.ts';
import { LedgerAudit } from './ledger-audit.ts';
import { Operator } from './operator.ts';
import { tableOf } from './report.ts';

const MINUTES = Number(process.env.RETL_CHAOS_MINUTES ?? 1);
const SEED = Number(process.env.RETL_CHAOS_SEED ?? Date.now() % 1_000_000_007);
/** Where each act is written down as it happens; nowhere where it is not set. */
const DIARY = process.env.RETL_CHAOS_DIARY;
const LYING = 0.35;
const INDEXES = {
  people: { kind: 'membership-search' },
  changes: { kind: 'membership-history', hold_log: false },
};

const store = useStore();
let servers: Servers;
let world: World;
const dice = new Dice(SEED);

beforeAll(async () => {
  servers = await Servers.start();
  const { writer } = store.server;
  const env = {
    ...SALESFORCE_ENV,
    CHAOS_KEY_ID: writer.access_key_id,
    CHAOS_KEY: writer.secret_access_key,
  };
  const system = await System.start({
    ...servers.options,
    env,
    project: { indexes: INDEXES },
  });
  const source = await lineToSources(system);
  const lanes = await lanesOf(system);
  const crew = new Crew(system, 2);
  const operator = new Operator(system, lanes, crew, dice.fork(), { ...system.env, ...env }, diary);
  world = { system, servers, crew, operator, lanes, source, indexes: Object.keys(INDEXES) };
  await crew.man();
}, 300_000);
afterAll(async () => {
  await world?.system.stop();
  await servers?.stop();
}, 120_000);

async function lineToSources(system: System): Promise<World['source']> {
  const url = new URL(system.sourceUrl);
  const line = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  system.defer(() => line.close());
  url.host = `${line.host}:${line.port}`;
  await system.connect('shop', { type: 'postgres', url: url.href });
  return line;
}

async function lanesOf(system: System): Promise<readonly Lane[]> {
  const lanes: Lane[] = [];
  for (const name of Object.keys(TABLES)) lanes.push(await tableLane(system, name, dice.fork()));
  lanes.push(await storeLane(system, 'objects', dice.fork(), store));
  lanes.push(await salesforceLane(system, 'org', dice.fork()));
  for (const name of Object.keys(APIS)) lanes.push(await apiLane(system, name, dice.fork()));
  return lanes;
}

function diary(text: string): void {
  if (DIARY !== undefined) appendFileSync(DIARY, `${new Date().toISOString()} ${text}\n`);
}

/** Does something again and again until it is told to stop; what is away now is back next time. */
function again(work: () => Promise<void>, everyMs: number): () => Promise<void> {
  let over = false;
  const loop = async (): Promise<void> => {
    while (!over) {
      await work().catch((error: unknown) => {
        diary(`not now: ${error instanceof Error ? error.message : String(error)}`);
      });
      await sleep(everyMs);
    }
  };
  const done = loop();
  return () => {
    over = true;
    return done;
  };
}

/** How executions of mirrors ended, and how often each way. */
async function endings(): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  const { client } = world.system.temporal;
  for await (const { status, workflowId, runId } of client.workflow.list({
    query: "WorkflowType = 'mirror'",
  })) {
    let words: string = status.name.toLowerCase();
    if (status.name === 'FAILED') {
      const error = await client.workflow
        .getHandle(workflowId, runId, { followRuns: false })
        .result()
        .catch((e: unknown) => e);
      const end = endingOf(error);
      words = end === null ? 'not to be read' : wordsOf(end);
    }
    counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  return counts;
}

test(
  `chaos for ${MINUTES} min: nothing is lost, nothing is removed that a snapshot wants, nothing is done twice, and every destination is its query`,
  async () => {
    if (DIARY !== undefined) writeFileSync(DIARY, '');
    const { system, operator, lanes } = world;
    const audit = new LedgerAudit(system.journal, lanes, (what) => diary(`WRONG ${what}`));
    const chaos = new Chaos(world, dice.fork(), (act, what) => diary(`${act}: ${what}`));
    const settled = await retl(['schedules', 'apply'], {
      cwd: system.project.folder,
      env: { ...system.env },
    });
    expect(settled.code, settled.stderr).toBe(0);
    for (const { name } of lanes) await chaos.start(name);
    await chaos.follow();
    const stops = [again(() => operator.round(), 1_000), again(() => audit.look(), 1_500)];
    // A first set everywhere, so that there is something to lose.
    await sleep(Math.min(15_000, MINUTES * 15_000));
    for (const lane of lanes) lane.lie(LYING);
    await chaos.play(MINUTES * 60_000);
    await calm(world);
    const results = await finale(world);
    for (const stop of stops) await stop();
    await audit.look();
    const verified = await verify(world);
    const offences = lanes.flatMap((lane) => lane.offences().map((what) => `${lane.name}: ${what}`));
    const ended = await endings();
    const { looks, effects } = audit;
    console.log(
      tableOf(results, {
        seed: SEED,
        minutes: MINUTES,
        looks,
        effects,
        tally: operator.tally,
        endings: ended,
      }),
    );
    for (const { lane, endings: own } of results) for (const end of own) diary(`quiet ${lane.name}: ${end}`);
    const unforeseen = [...ended.keys()].filter((words) => /^unexpected|timed|not to be read/.test(words));
    const differences = results.flatMap(({ lane, differences: d }) =>
      d.map((what) => `${lane.name}: ${what}`),
    );
    const { surprises } = chaos;
    expect({ differences, verified, found: audit.found, offences, unforeseen, surprises }).toEqual({
      differences: [],
      verified: [],
      found: [],
      offences: [],
      unforeseen: [],
      surprises: [],
    });
  },
  MINUTES * 60_000 + 1_200_000,
);
