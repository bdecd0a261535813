/** Scenes with a destination: an HTTP audience that misbehaves on demand, or a table of another database. */

import pg from 'pg';
import { FakeAudience, type FakeAudienceSettings } from './fake-audience.ts';
import { createTestDatabase } from './postgres.ts';
import type { System } from './system.ts';
import { eventually, Scene, type SceneOptions, tableOf } from './system-scene.ts';

export interface HttpSceneOptions extends SceneOptions {
  readonly connection?: object;
  readonly audience?: FakeAudienceSettings;
  /** The user's word that the same request twice equals once. */
  readonly idempotent?: boolean;
}

/** What replies of the fake audience mean, row by row. */
export const PER_ROW = {
  per_row: {
    list: '/results',
    id: 'id',
    match: 'id',
    ok: { field: 'status', values: ['ok'], rejected: ['invalid'] },
    reason: 'reason',
  },
};

export class HttpScene extends Scene {
  constructor(
    system: System,
    mirror: string,
    table: string,
    readonly audience: FakeAudience,
  ) {
    super(system, mirror, table);
  }

  static async create(system: System, name: string, options: HttpSceneOptions = {}): Promise<HttpScene> {
    const audience = await FakeAudience.start({ idFields: ['id'], ...options.audience });
    system.defer(() => audience.stop());
    const scene = new HttpScene(system, name, tableOf(name), audience);
    await scene.createSource(options.rows ?? 10);
    await system.connect(`${name}-api`, { type: 'http', base_url: audience.url, ...options.connection });
    await scene.configure(options);
    return scene;
  }

  async configure(options: HttpSceneOptions): Promise<void> {
    const destination = {
      connection: `${this.mirror}-api`,
      upsert: { method: 'POST', path: '/members' },
      remove: { method: 'DELETE', path: '/members' },
      verify_empty: { path: '/members', count: '/count' },
      outcomes: PER_ROW,
      idempotency: { header: 'Idempotency-Key' },
      idempotent: options.idempotent ?? false,
    };
    await this.write(destination, options);
  }

  /** Waits until the audience has seen so many requests that change something. */
  async untilSeen(writes: number): Promise<void> {
    await eventually(() => this.writes.length >= writes);
  }

  /** Requests that change something, in the order of their arrival. */
  get writes(): readonly { readonly method: string; readonly key: string; readonly body: string }[] {
    return this.audience.requests
      .filter((r) => r.method !== 'GET')
      .map((r) => ({ method: r.method, key: String(r.headers['idempotency-key']), body: r.body }));
  }
}

const WRITER = 'system_writer';

export interface TableSceneOptions extends SceneOptions {
  /** `create table audience (…)` of the target; `id text primary key, plan text` where left out. */
  readonly target?: string;
  /** What the writer's role may do with it. */
  readonly rights?: string;
  /** Whether the writer's role owns the table. */
  readonly owned?: boolean;
  /** Host and port in place of the server's own: a proxy. */
  readonly through?: { readonly host: string; readonly port: number };
}

export class TableScene extends Scene {
  constructor(
    system: System,
    mirror: string,
    table: string,
    /** The target's database, as a superuser. */
    readonly target: pg.Pool,
  ) {
    super(system, mirror, table);
  }

  static async create(system: System, name: string, options: TableSceneOptions = {}): Promise<TableScene> {
    const database = await createTestDatabase();
    const target = new pg.Pool({ connectionString: database.url, max: 2 });
    // Its database is dropped at the end, with whatever connection still closes.
    target.on('error', () => undefined);
    system.defer(() => database.drop());
    system.defer(() => target.end());
    await target.query(options.target ?? 'create table audience (id text primary key, plan text)');
    await target.query(`
      do $$ begin
        perform pg_advisory_xact_lock(hashtextextended('retl system tests', 0));
        if not exists (select from pg_roles where rolname = '${WRITER}') then create role ${WRITER} login; end if;
      end $$;
      grant usage, create on schema public to ${WRITER};
      grant ${options.rights ?? 'select, insert, update, delete'} on audience to ${WRITER}`);
    if (options.owned === true) await target.query(`alter table audience owner to ${WRITER}`);
    const scene = new TableScene(system, name, tableOf(name), target);
    await scene.createSource(options.rows ?? 10);
    const url = new URL(database.url);
    url.username = WRITER;
    if (options.through !== undefined) url.host = `${options.through.host}:${options.through.port}`;
    await system.connect(`${name}-db`, { type: 'postgres', url: url.href });
    await scene.configure(options);
    return scene;
  }

  async configure(options: TableSceneOptions): Promise<void> {
    await this.write({ connection: `${this.mirror}-db`, table: 'audience' }, options);
  }

  /** Rows of the target, in the order of the identity. */
  async targetRows(
    query = 'select id, plan from audience order by id collate "C"',
  ): Promise<readonly object[]> {
    return (await this.target.query<object>(query)).rows;
  }

  /** Rows that the source's query returns now, in the same order. */
  async sourceRows(
    query = 'select id, plan from $table order by id collate "C"',
  ): Promise<readonly object[]> {
    return (await this.system.source.query<object>(query.replaceAll('$table', this.table))).rows;
  }
}
