/** A scene whose destination is an org of Salesforce. */

import { FakeSalesforce } from './fake-salesforce.ts';
import { KEY } from './fake-salesforce-org.ts';
import { CLIENT } from './salesforce-writer.ts';
import type { System } from './system.ts';
import { Scene, type SceneOptions, tableOf } from './system-scene.ts';

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
