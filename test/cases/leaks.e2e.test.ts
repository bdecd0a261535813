/**
 * leaks: values, identities, secrets and the words of other systems are planted, made to fail in every way, and looked for in
 * Temporal, in the worker's output, in the journal's server log and, secrets, in the journal itself.
 */

import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freeAddress, scrape } from '../support/metrics-scrape.ts';
import { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';
import { ending } from '../support/system-scene.ts';
import type { WorkerProcess } from '../support/worker-process.ts';

/** One word per place that it starts from, so that a finding says where the leak is. */
const PLANTED = {
  rows: 'canary-row',
  keys: 'canary-key',
  token: 'canary-token',
  journalPassword: 'canary-journal-password',
  shopPassword: 'canary-shop-password',
  reply: 'canary-reply',
  sourceError: 'canary-source-error',
  targetError: 'canary-target-error',
  mapping: 'canary-mapping',
  setting: 'canary-setting',
  settingKey: 'canary_setting_key',
};
const SECRETS = [PLANTED.token, PLANTED.journalPassword, PLANTED.shopPassword];

let system: System;
let worker: WorkerProcess;
let metrics: string;

beforeAll(async () => {
  system = await System.start();
  metrics = await freeAddress();
  const withPassword = (url: string, password: string): string => {
    const changed = new URL(url);
    changed.password = password;
    return changed.href;
  };
  worker = await system.startWorker({
    RETL_JOURNAL_URL: withPassword(system.env.RETL_JOURNAL_URL ?? '', PLANTED.journalPassword),
    SHOP_URL: withPassword(system.sourceUrl, PLANTED.shopPassword),
    API_TOKEN: PLANTED.token,
    RETL_METRICS: metrics,
    RETL_METRICS_EVERY: '500ms',
  });
  await system.connect('shop', { type: 'postgres', url: `\${env:SHOP_URL}` });
  await failInEveryWay();
});
afterAll(() => system.stop());

const ROWS = `create table $table (id text primary key, plan text);
  insert into $table values ('${PLANTED.keys}-1', '${PLANTED.rows}-1'), ('${PLANTED.keys}-2', '${PLANTED.rows}-2')`;

async function scene(name: string, query?: string): Promise<HttpScene> {
  return HttpScene.create(system, name, {
    rows: ROWS,
    connection: { auth: { bearer: `\${env:API_TOKEN}` } },
    audience: { bearer: PLANTED.token, idFields: ['id'] },
    ...(query === undefined ? {} : { query }),
  });
}

async function failInEveryWay(): Promise<void> {
  await (await scene('leak-none')).completed();
  const echoed = await scene('leak-echo');
  echoed.audience.fault({ kind: 'echo' });
  await echoed.run();
  for (const status of [401, 422]) {
    const answered = await scene(`leak-${status}`);
    answered.audience.fault({
      kind: 'status',
      status,
      body: JSON.stringify({ error: PLANTED.reply, t: PLANTED.token }),
    });
    await answered.run();
  }
  const rejected = await scene('leak-rejected');
  rejected.audience.fault({ kind: 'rows', reject: [0, 1] });
  await rejected.run();
  const blocked = await scene('leak-blocked');
  blocked.audience.fault({ kind: 'status', status: 500, body: `${PLANTED.reply} ${PLANTED.token}` });
  const handle = await blocked.start();
  await blocked.untilWaiting(handle, 'blocked');
  await blocked.signal('cancel');
  await ending(handle);
  for (const [name, query] of [
    ['cast', `select id, (plan || '${PLANTED.sourceError}')::int as plan from $table`],
    ['syntax', `select ${PLANTED.sourceError.replaceAll('-', '_')} from $table`],
    ['duplicate', 'select id, plan from $table union all select id, plan from $table'],
    ['null', `select nullif(id, '${PLANTED.keys}-2') as id, plan from $table`],
    ['nan', `select id, 'NaN'::float8 as plan from $table`],
    ['conflict', 'select id, plan from $table union all select upper(id), plan from $table'],
  ] as const) {
    await (await scene(`leak-${name}`, query)).run();
  }
  await failInTable();
  await failInModule();
  await failInConfiguration();
  await loseJournal();
}

/** Values and keys of a mirror's file that are not valid there. */
async function failInConfiguration(): Promise<void> {
  const { setting, settingKey } = PLANTED;
  const identity = { id: 'id' };
  for (const [n, broken] of [
    { members: { identity, payload: {}, when: { is: setting } } },
    { safety: { empty_snapshot: setting, [settingKey]: 1 } },
    { [settingKey]: { [settingKey]: setting } },
    { members: { identity, payload: { plan: { [settingKey]: setting } } } },
  ].entries()) {
    const configured = await scene(`leak-config-${n}`);
    await configured.configure({ mirror: broken });
    const end = await configured.run();
    expect(end).toMatchObject({ kind: 'failed', type: 'invalid' });
    expect(JSON.stringify(end)).toContain(`mirrors/leak-config-${n}.yaml:`);
  }
}

async function failInTable(): Promise<void> {
  const table = await TableScene.create(system, 'leak-table', {
    rows: ROWS,
    target: `create table audience (id text primary key, plan text check (plan is null or plan = '${PLANTED.targetError}'))`,
  });
  await table.run();
}

/** A mapping of the user's own, which throws what it has read. */
async function failInModule(): Promise<void> {
  const mapped = await scene('leak-module');
  await system.project.write(
    'mirrors/leaky.js',
    `import { z } from ${JSON.stringify(import.meta.resolve('zod'))};
     export default { rowType: z.object({ id: z.string(), plan: z.string() }),
       project: (row) => { throw new Error('${PLANTED.mapping} ' + row.id + ' ' + row.plan); } };`,
  );
  await mapped.configure({ mirror: { members: undefined, mapping: { module: './leaky.js' } } });
  expect(await mapped.run()).toMatchObject({ kind: 'failed', type: 'invalid' });
}

async function loseJournal(): Promise<void> {
  const lost = await scene('leak-journal');
  lost.audience.fault({ kind: 'delay', ms: 600 });
  const handle = await lost.start();
  await lost.untilSeen(1);
  system.proxy.refusing = true;
  system.proxy.cut();
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  system.proxy.refusing = false;
  await ending(handle);
}

/** Everything that Temporal keeps and shows of every execution. */
async function temporalText(client: Client): Promise<string> {
  const found: string[] = [];
  for await (const { workflowId, runId } of client.workflow.list()) {
    const handle = client.workflow.getHandle(workflowId, runId);
    found.push(texts(await handle.fetchHistory()), texts((await handle.describe()).raw));
    found.push(JSON.stringify(await handle.query('__temporal_workflow_metadata')));
  }
  expect(found.length).toBeGreaterThan(30);
  return found.join('\n');
}

/** All texts of an object, those in payloads included. */
function texts(value: unknown): string {
  if (typeof value === 'string') return `${value}\n`;
  if (value instanceof Uint8Array) return `${Buffer.from(value).toString('utf8')}\n`;
  if (typeof value !== 'object' || value === null) return '';
  return Object.values(value).map(texts).join('');
}

function planted(text: string, words: readonly string[] = Object.values(PLANTED)): readonly string[] {
  return words.filter((word) => text.includes(word));
}

describe('what is planted is not found', () => {
  test('in Temporal: history, descriptions, current details', async () => {
    const text = await temporalText(system.temporal.client);
    expect(text).toContain('leak-module');
    expect(planted(text)).toEqual([]);
  });

  test('in the metrics, which count all of it', async () => {
    const seen = await scrape(metrics);
    for (const mirror of ['leak-none', 'leak-rejected', 'leak-blocked'])
      expect(seen.value('retl_requests_total', { mirror, action: 'upsert' }), mirror).toBeGreaterThan(0);
    expect(seen.value('retl_last_completed_age_seconds', { mirror: 'leak-module' })).not.toBeNull();
    expect(planted(seen.text)).toEqual([]);
  });

  test('in what the worker writes', async () => {
    expect(planted(await worker.output())).toEqual([]);
  });

  test('in the log of the journal’s server, but for what the source and the target say there themselves', async () => {
    const [{ data_directory: data } = { data_directory: '' }] = await system.rows<{ data_directory: string }>(
      'show data_directory',
    );
    const log = await readFile(join(dirname(data), 'postgres.log'), 'utf8');
    expect(log).toContain(PLANTED.sourceError);
    const said = planted(
      log
        .split('\n')
        .filter((line) => !/canary-(source|target)-error/.test(line))
        .join('\n'),
    );
    expect(said.filter((word) => ![PLANTED.rows, PLANTED.keys].includes(word))).toEqual([]);
    expect(log.split('\n').filter((line) => line.includes('retl.') && planted(line).length > 0)).toEqual([]);
  });

  test('secrets in the journal, which keeps the replies that repeated them', async () => {
    const rows =
      await system.rows(`select coalesce(receipt, '') || coalesce(refusal, '') as text from retl.batch
      union all select reason from retl.rejection union all select settings from retl.revision`);
    const text = JSON.stringify(rows);
    expect(planted(text, SECRETS)).toEqual([]);
    expect(text).toContain(PLANTED.reply);
  });

  test('in a revision: secrets stand there by reference', async () => {
    const rows = await system.rows('select settings from retl.revision');
    expect(JSON.stringify(rows)).toContain('{env:API_TOKEN}');
  });
});
