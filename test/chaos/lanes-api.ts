/** Mirrors into APIs: told what to do at once or by jobs, and asked, or not, what became of it. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { retl } from '../cli/support.ts';
import { FakeSalesforce, type Step } from '../support/fake-salesforce.ts';
import { KEY } from '../support/fake-salesforce-org.ts';
import { CLIENT } from '../support/salesforce-writer.ts';
import type { System } from '../support/system.ts';
import { PER_ROW } from '../support/system-destinations.ts';
import { tableOf } from '../support/system-scene.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import type { Dice } from './dice.ts';
import { type Lane, LaneScene, OFTEN } from './lane.ts';
import type { WriteLie } from './lies.ts';
import { LyingApi } from './lying-api.ts';
import { Story } from './story.ts';

interface ApiSettings {
  readonly kind: string;
  readonly destination: object;
  readonly mirror?: { readonly [section: string]: unknown };
  readonly jobs?: boolean;
  readonly dedupes?: boolean;
  readonly never?: readonly WriteLie[];
  /** Share of its members that it refuses now and then. */
  readonly poison?: boolean;
  readonly schedule?: boolean;
  /** Members that it holds from the beginning, and that are imported. */
  readonly tracked?: boolean;
}

const JOBS = {
  poll: { path: '/jobs/{job}' },
  state: { at: '/state', running: ['processing'], done: ['finished'], failed: ['failed'] },
  results: { per_row: { ...PER_ROW.per_row } },
  poll_every_ms: 500,
  max_jobs: 4,
};
const FINISH = { method: 'POST', path: '/finish' };
const BY_KEY = { lookup: { by_key: { path: '/keys/{key}' } } };

/** Each kind that the adapter ships, with its recovery and its way of dealing with rejections. */
export const APIS: { readonly [name: string]: ApiSettings } = {
  idem: {
    kind: 'http, idempotent, continue, finish',
    destination: { idempotent: true, finish: { ...FINISH, idempotent: true } },
    mirror: { on_rejection: 'continue' },
    dedupes: true,
    poison: true,
    schedule: true,
  },
  'by-key': {
    kind: 'http, lookup by key, refresh',
    destination: BY_KEY,
    mirror: { refresh_after: '15s' },
    never: ['half'],
    schedule: true,
  },
  'by-member': {
    kind: 'http, lookup by member, tolerate',
    destination: { lookup: { by_member: { path: '/members/{id}', member: '/member' } } },
    mirror: { on_rejection: { tolerate: { max: '20%' } } },
    poison: true,
  },
  manual: { kind: 'http, no recovery, stop, finish', destination: { finish: FINISH }, poison: true },
  tracked: {
    kind: 'http, idempotent, tracked, split',
    destination: { idempotent: true, split: [400] },
    mirror: { baseline: 'tracked', on_rejection: { tolerate: { max: 3 } } },
    dedupes: true,
    tracked: true,
    poison: true,
    schedule: true,
  },
  'jobs-key': {
    kind: 'http jobs, lookup by key',
    destination: { ...BY_KEY, asynchronous: JOBS },
    mirror: { on_rejection: 'continue' },
    jobs: true,
    poison: true,
    schedule: true,
  },
  'jobs-manual': { kind: 'http jobs, no recovery', destination: { asynchronous: JOBS }, jobs: true },
};

export async function apiLane(system: System, name: string, dice: Dice): Promise<Lane> {
  const settings = APIS[name];
  if (settings === undefined) throw new Error(`no such API: ${name}`);
  const { jobs = false, dedupes = false, never = [] } = settings;
  const api = await LyingApi.start(dice.fork(), { jobs, dedupes, never });
  system.defer(() => api.stop());
  const line = await startTcpProxy({ host: '127.0.0.1', port: api.port });
  system.defer(() => line.close());
  const table = tableOf(name);
  const story = await Story.begin(system.source, table, dice.fork());
  const scene = new LaneScene(system, name, table);
  await system.connect(`${name}-api`, {
    type: 'http',
    base_url: `http://127.0.0.1:${line.port}`,
    timeout_ms: 1_500,
    connect_timeout_ms: 1_000,
  });
  await scene.configure(
    {
      connection: `${name}-api`,
      upsert: { method: 'POST', path: '/members' },
      remove: { method: 'DELETE', path: '/members' },
      ...(settings.tracked === true ? {} : { verify_empty: { path: '/members', count: '/count' } }),
      ...(jobs ? {} : { outcomes: PER_ROW }),
      idempotency: { header: 'Idempotency-Key' },
      ...settings.destination,
    },
    { ...settings.mirror, ...(settings.schedule === true ? OFTEN : {}) },
  );
  if (settings.tracked === true) await importBaseline(system, name, api);
  return {
    name,
    kind: settings.kind,
    scene,
    story,
    whole: false,
    once: !dedupes,
    repeats: dedupes,
    line,
    schedule: settings.schedule ?? false,
    held: async () => new Map(api.members),
    effects: async (from) => api.effects.slice(from),
    // Where each lost answer waits for a person, fewer of them leave time for the rest.
    lie: (share) => {
      api.lying = 'lookup' in settings.destination || dedupes ? share : share / 3;
    },
    lies: () => api.lies,
    stir: () => {
      if (settings.poison !== true) return;
      api.poison.clear();
      const ids = [...story.now.keys()];
      if (ids.length > 0 && dice.chance(0.5)) api.poison.add(dice.pick(ids)).add(dice.pick(ids));
    },
    mend: async () => {
      api.poison.clear();
      api.repair();
    },
    settle: ({ id }) => api.settle(id),
    offences: () => api.offences,
  };
}

async function importBaseline(system: System, name: string, api: LyingApi): Promise<void> {
  const rows = [...Array.from({ length: 9 }, (_, n) => `m00${n + 1}`), 'left-over'];
  for (const id of rows) api.members.set(id, 'old');
  const file = join(system.project.folder, `${name}.csv`);
  await writeFile(file, ['id,plan', ...rows.map((id) => `${id},old`), ''].join('\n'));
  const args = ['baseline', 'import', name, '--from', file, '--because', 'it was exported', '--yes'];
  const ran = await retl(args, { cwd: system.project.folder, env: system.env });
  if (ran.code !== 0) throw new Error(`the baseline was not imported: ${ran.stderr}`);
}

export const SALESFORCE_ENV = { CHAOS_CLIENT_SECRET: CLIENT.clientSecret };
const STEPS: readonly Step[] = [
  'create',
  'upload',
  'close',
  'abort',
  'job',
  'successfulResults',
  'failedResults',
  'unprocessedrecords',
  'query',
];

export async function salesforceLane(system: System, name: string, dice: Dice): Promise<Lane> {
  const fake = await FakeSalesforce.start(CLIENT);
  system.defer(() => fake.stop());
  const line = await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(fake.url).port) });
  system.defer(() => line.close());
  const table = tableOf(name);
  const story = await Story.begin(system.source, table, dice.fork());
  const scene = new LaneScene(system, name, table);
  await system.connect(`${name}-org`, {
    type: 'salesforce',
    instance_url: `http://127.0.0.1:${line.port}`,
    auth: { client_id: CLIENT.clientId, client_secret: `\${env:CHAOS_CLIENT_SECRET}` },
    timeout_ms: 1_500,
    connect_timeout_ms: 1_000,
  });
  const columns = { plan: 'Plan__c' };
  await scene.configure(
    { connection: `${name}-org`, object: 'Member__c', external_id: KEY, columns, poll_every_ms: 300 },
    { on_rejection: 'continue', ...OFTEN },
  );
  let share = 0;
  let lies = 0;
  const stir = (): void => {
    if (!dice.chance(share)) return;
    lies += 1;
    if (dice.chance(0.4)) {
      const ends = [
        { polls: 3 },
        { reject: [0] },
        { state: 'Failed', processed: 2 },
        { shuffle: true },
      ] as const;
      fake.ends.push(dice.pick(ends));
    } else if (fake.faults.length < 3) {
      const answers = ['lost', 'never', { status: 500 }, { status: 503 }, { status: 429 }] as const;
      fake.fault(dice.pick(STEPS), dice.pick(answers), dice.chance(0.5));
    }
    if (dice.chance(0.1)) fake.revokeTokens();
  };
  return {
    name,
    kind: 'salesforce, continue',
    scene,
    story,
    whole: false,
    once: false,
    repeats: false,
    line,
    schedule: true,
    held: async () => {
      const own = fake.org.live.filter(({ fields }) => fields[KEY] !== undefined);
      return new Map(own.map(({ fields }) => [String(fields[KEY]), String(fields.Plan__c)]));
    },
    effects: async () => [],
    lie: (next) => {
      share = next;
    },
    lies: () => lies,
    stir,
    mend: async () => {
      fake.faults.length = 0;
      fake.ends.length = 0;
    },
    settle: () => null,
    offences: () => [],
  };
}
