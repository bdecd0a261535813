/** Mirrors into tables and into an object store. */

import type { Store } from '../contract/destination-s3-kit.ts';
import type { System } from '../support/system.ts';
import { TableScene } from '../support/system-destinations.ts';
import { tableOf } from '../support/system-scene.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import type { Dice } from './dice.ts';
import { type Lane, LaneScene, OFTEN, type Seen } from './lane.ts';
import { Story } from './story.ts';

/** A table that keeps book of what is done to it. */
const BOOKED = `create table audience (id text primary key, plan text check (plan <> 'refused'));
  create table book (n bigint generated always as identity, action text, id text, plan text, at timestamptz);
  create function note() returns trigger language plpgsql security definer set search_path = public as $$
  begin
    insert into book (action, id, plan, at) values (case tg_op when 'DELETE' then 'remove' else 'upsert' end,
      coalesce(new.id, old.id), coalesce(new.plan, ''), clock_timestamp());
    return null;
  end $$;
  create trigger note after insert or update or delete on audience for each row execute function note()`;
const PLAIN = 'create table audience (id text primary key, plan text)';
const REPLACE = { strategy: 'native-replace' };

interface TableSettings {
  readonly kind: string;
  readonly target: string;
  readonly destination: object;
  readonly mirror: { readonly [section: string]: unknown };
  readonly plans?: readonly string[];
  readonly schedule?: boolean;
}

export const TABLES: { readonly [name: string]: TableSettings } = {
  table: { kind: 'postgres, fenced, stop', target: BOOKED, destination: {}, mirror: {}, schedule: true },
  'table-tolerant': {
    kind: 'postgres, fenced, tolerate',
    target: BOOKED,
    destination: {},
    mirror: { on_rejection: { tolerate: { max: '30%' } } },
    plans: ['vip', 'gold', 'free', 'vip', 'gold', 'free', 'vip', 'gold', 'refused'],
  },
  swap: {
    kind: 'postgres, swap: replace',
    target: PLAIN,
    destination: { swap: 'replace' },
    mirror: REPLACE,
    schedule: true,
  },
  rename: {
    kind: 'postgres, swap: rename',
    target: `${PLAIN}; alter table audience owner to system_writer`,
    destination: { swap: 'rename', accept_losses: ['grants'] },
    mirror: REPLACE,
  },
};

export async function tableLane(system: System, name: string, dice: Dice): Promise<Lane> {
  const settings = TABLES[name];
  if (settings === undefined) throw new Error(`no such table: ${name}`);
  const { hostname, port } = new URL(system.sourceUrl);
  const line = await startTcpProxy({ host: hostname, port: Number(port) });
  system.defer(() => line.close());
  const made = await TableScene.create(system, name, { target: settings.target, through: line, rows: 1 });
  const { target } = made;
  const table = tableOf(name);
  const story = await Story.begin(system.source, table, dice.fork(), settings.plans);
  const scene = new LaneScene(system, name, table);
  await scene.configure(
    { connection: `${name}-db`, table: 'audience', ...settings.destination },
    { ...settings.mirror, ...(settings.schedule === true ? OFTEN : {}) },
  );
  const whole = settings.mirror === REPLACE;
  return {
    ...plain(dice, line),
    name,
    kind: settings.kind,
    scene,
    story,
    whole,
    schedule: settings.schedule ?? false,
    held: async () => {
      const { rows } = await target.query<{ id: string; plan: string }>('select id, plan from audience');
      return new Map(rows.map(({ id, plan }) => [id, plan]));
    },
    effects: async (from) => {
      if (whole) return [];
      const { rows } = await target.query<Omit<Seen, 'key'> & { readonly at: number }>(
        `select action, id, plan, extract(epoch from at)::float8 * 1000 as at from book order by n offset $1`,
        [from],
      );
      return rows.map((row) => ({ ...row, key: null }));
    },
  };
}

export async function storeLane(system: System, name: string, dice: Dice, store: Store): Promise<Lane> {
  const bucket = await store.newBucket();
  const line = await startTcpProxy({ host: '127.0.0.1', port: store.proxy.port });
  system.defer(() => line.close());
  const table = tableOf(name);
  const story = await Story.begin(system.source, table, dice.fork());
  const scene = new LaneScene(system, name, table);
  await system.connect(`${name}-store`, {
    type: 's3',
    endpoint: `http://127.0.0.1:${line.port}`,
    access_key_id: `\${env:CHAOS_KEY_ID}`,
    secret_access_key: `\${env:CHAOS_KEY}`,
    timeout_ms: 2_000,
    connect_timeout_ms: 1_000,
  });
  await scene.configure(
    { connection: `${name}-store`, bucket, keep_superseded: 1, keep_superseded_ms: 5_000 },
    { ...REPLACE, ...OFTEN },
  );
  const faults = ['answer-lost', 'silent', 'request-lost', 'slow-down', 'bad-gateway'] as const;
  const own = plain(dice, line);
  let lies = 0;
  let share = 0;
  return {
    ...own,
    name,
    kind: 's3',
    scene,
    story,
    whole: true,
    schedule: true,
    lie: (next) => {
      share = next;
      own.lie(next);
    },
    lies: () => lies + own.lies(),
    stir: () => {
      if (dice.chance(share)) {
        lies += 1;
        store.proxy.arm(dice.pick(faults), () => true);
      } else own.stir();
    },
    mend: async () => store.proxy.arm('none'),
    held: async () => {
      const lines = await store.read(bucket);
      return lines === null ? null : new Map(lines.map(memberOf));
    },
    effects: async () => [],
  };
}

function memberOf(line: string): readonly [string, string] {
  const { id, plan } = JSON.parse(line) as { readonly id: string; readonly plan: string };
  return [id, plan];
}

/** A destination that lies by its line alone, and whose outcomes can all be found out. */
function plain(
  dice: Dice,
  line: TcpProxy,
): Pick<Lane, 'once' | 'repeats' | 'line' | 'lie' | 'lies' | 'stir' | 'mend' | 'settle' | 'offences'> {
  let share = 0;
  let lies = 0;
  return {
    once: false,
    repeats: false,
    line,
    lie: (next) => {
      share = next;
      if (next === 0) line.cutAfter(null);
    },
    lies: () => lies,
    stir: () => {
      line.cutAfter(null);
      if (!dice.chance(share)) return;
      lies += 1;
      line.cutAfter(dice.between(500, 6_000));
    },
    mend: async () => line.cutAfter(null),
    settle: () => null,
    offences: () => [],
  };
}
