/** A scene whose destination is an asynchronous API: requests become jobs, and a job takes effect when it ends. */

import { FakeJobs } from './fake-jobs.ts';
import type { System } from './system.ts';
import { eventually, Scene, type SceneOptions, tableOf } from './system-scene.ts';

export interface JobsSceneOptions extends SceneOptions {
  /** Keys of the mirror's `batch`. */
  readonly batch?: object;
}

const RESULTS = {
  per_row: {
    list: '/results',
    id: 'id',
    match: 'email_sha256',
    ok: { field: 'status', values: ['ok'], rejected: ['invalid'] },
    reason: 'reason',
  },
};

export class JobsScene extends Scene {
  constructor(
    system: System,
    mirror: string,
    table: string,
    readonly api: FakeJobs,
  ) {
    super(system, mirror, table);
  }

  static async create(system: System, name: string, options: JobsSceneOptions = {}): Promise<JobsScene> {
    const api = await FakeJobs.start();
    system.defer(() => api.stop());
    const scene = new JobsScene(system, name, tableOf(name), api);
    await scene.createSource(options.rows ?? 5);
    await system.connect(`${name}-api`, { type: 'http', base_url: api.url, timeout_ms: 1_000 });
    const asynchronous = {
      poll: { path: '/jobs/{job}' },
      state: { at: '/state', running: ['processing'], done: ['finished'], failed: ['failed'] },
      results: RESULTS,
      poll_every_ms: 1_000,
      max_jobs: 50,
    };
    const destination = {
      connection: `${name}-api`,
      upsert: { method: 'POST', path: '/members' },
      remove: { method: 'DELETE', path: '/members' },
      idempotency: { header: 'Idempotency-Key' },
      asynchronous,
    };
    await scene.write(destination, {
      ...options,
      mirror: {
        members: { identity: { email_sha256: 'id' }, payload: { plan: 'plan' } },
        baseline: { kind: 'new-empty', attested: 'the fake begins empty' },
        batch: { rows: 5, in_flight: 1, ...options.batch },
        ...options.mirror,
      },
    });
    return scene;
  }

  /** Requests so far, each as its method and the end of its path. */
  get seen(): readonly string[] {
    return this.api.requests.map(({ method, path }) => `${method} ${path.split('/').slice(1).join('/')}`);
  }

  async untilJobs(count: number): Promise<void> {
    await eventually(() => this.api.jobs.length >= count);
  }

  /** Ids that the API holds, in order. */
  get holds(): readonly string[] {
    return [...this.api.members.keys()].sort();
  }
}
