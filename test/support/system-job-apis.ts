/** Scenes whose destination answers with jobs: an HTTP API, and an org of Salesforce. */

import { FakeJobs } from './fake-jobs.ts';
import { FakeSalesforce } from './fake-salesforce.ts';
import { KEY } from './fake-salesforce-org.ts';
import { CLIENT } from './salesforce-writer.ts';
import type { System } from './system.ts';
import { Scene, type SceneOptions, tableOf } from './system-scene.ts';

export class JobsScene extends Scene {
  constructor(
    system: System,
    mirror: string,
    table: string,
    readonly api: FakeJobs,
  ) {
    super(system, mirror, table);
  }

  static async create(system: System, name: string, options: SceneOptions = {}): Promise<JobsScene> {
    const api = await FakeJobs.start();
    system.defer(() => api.stop());
    const scene = new JobsScene(system, name, tableOf(name), api);
    await scene.createSource(options.rows ?? 12);
    await system.connect(`${name}-api`, { type: 'http', base_url: api.url, timeout_ms: 2_000 });
    const destination = {
      connection: `${name}-api`,
      upsert: { method: 'POST', path: '/members' },
      remove: { method: 'DELETE', path: '/members' },
      idempotency: { header: 'Idempotency-Key' },
      lookup: { by_key: { path: '/keys/{key}' } },
      asynchronous: {
        poll: { path: '/jobs/{job}' },
        state: { at: '/state', running: ['processing'], done: ['finished'] },
        results: {
          per_row: {
            list: '/results',
            id: 'id',
            match: 'id',
            ok: { field: 'status', values: ['ok'], rejected: ['invalid'] },
          },
        },
        poll_every_ms: 100,
      },
    };
    const attested = { baseline: { kind: 'new-empty', attested: 'made for this test' } };
    await scene.write(destination, { ...options, mirror: { ...attested, ...options.mirror } });
    return scene;
  }
}

const SECRET_NAME = 'ORG_CLIENT_SECRET';
/** What workers of {@link SalesforceScene} need in their environment. */
export const SALESFORCE_ENV = { [SECRET_NAME]: CLIENT.clientSecret };

export class SalesforceScene extends Scene {
  constructor(
    system: System,
    mirror: string,
    table: string,
    readonly fake: FakeSalesforce,
  ) {
    super(system, mirror, table);
  }

  static async create(system: System, name: string, options: SceneOptions = {}): Promise<SalesforceScene> {
    const fake = await FakeSalesforce.start(CLIENT);
    system.defer(() => fake.stop());
    const scene = new SalesforceScene(system, name, tableOf(name), fake);
    await scene.createSource(options.rows ?? 12);
    await system.connect(`${name}-org`, {
      type: 'salesforce',
      instance_url: fake.url,
      auth: { client_id: CLIENT.clientId, client_secret: `\${env:${SECRET_NAME}}` },
      timeout_ms: 2_000,
    });
    const destination = {
      connection: `${name}-org`,
      object: 'Member__c',
      external_id: KEY,
      columns: { plan: 'Plan__c' },
      poll_every_ms: 100,
    };
    await scene.write(destination, options);
    return scene;
  }

  /** Live records that have the external ID, as the query would return them. */
  get members(): ReadonlyMap<string, unknown> {
    const own = this.fake.org.live.filter(({ fields }) => fields[KEY] !== undefined);
    return new Map(
      own.map(({ fields }) => [String(fields[KEY]), { id: fields[KEY], plan: fields.Plan__c ?? null }]),
    );
  }
}
