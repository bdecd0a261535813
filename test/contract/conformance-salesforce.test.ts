/** The conformance kit, run on the `salesforce` destination against an org that follows the documentation. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ConformanceHarness, conformanceChecks } from '../../src/destinations/conformance.ts';
import {
  type SalesforceConnection,
  type SalesforceOptions,
  salesforceDestination,
} from '../../src/destinations/salesforce/index.ts';
import { FakeSalesforce } from '../support/fake-salesforce.ts';
import { CLIENT, record, salesforceSettings } from '../support/salesforce-writer.ts';

let fake: FakeSalesforce;
let gone: string;

beforeAll(async () => {
  fake = await FakeSalesforce.start(CLIENT);
  const other = await FakeSalesforce.start(CLIENT);
  gone = other.url;
  await other.stop();
});

afterAll(() => fake.stop());

function harness(): ConformanceHarness<SalesforceConnection, SalesforceOptions> {
  return {
    adapter: salesforceDestination,
    ...salesforceSettings(fake.url),
    sameTargets: [
      salesforceSettings(`${fake.url}/`, { object: 'MEMBER__C', external_id: 'key__c' }),
      salesforceSettings(fake.url, {}, { api_version: '60.0', auth: { access_token: 'another' } }),
    ],
    otherTargets: [
      salesforceSettings(gone),
      salesforceSettings(fake.url, { object: 'Contact' }),
      salesforceSettings(fake.url, { external_id: 'Other__c' }),
    ],
    unreachable: salesforceSettings(gone),
    secrets: [CLIENT.clientSecret, 'granted!token'],
    member: (n, variant) =>
      record(`O'Brien, ${n} "the" \\ ü😀`, {
        Variant__c: variant,
        Name: 'Zoë 😀, "quoted"\r\nline\n',
        Plan__c: null,
      }),
    held: () =>
      Promise.resolve(
        fake.org.live.map(({ fields }) => ({ ...fields, Variant__c: Number(fields.Variant__c) })),
      ),
    jobs: () => fake.org.jobs.size,
    reset: async () => fake.reset(),
    faults: {
      'answer-lost': () => fake.fault('close', 'lost', true),
      'nothing-applied': () => fake.fault('create', { status: 503, errorCode: 'SERVER_UNAVAILABLE' }),
      'never-answers': () => fake.fault('close', 'never', true),
      'reject-first': () => void fake.ends.push({ reject: [0] }),
      'reply-shuffled': () => void fake.ends.push({ reject: [0], shuffle: true }),
      'reply-lacks-id': () => void fake.ends.push({ missing: [1] }),
      'reply-repeats-id': () => void fake.ends.push({ repeat: [1] }),
      'reply-adds-id': () => void fake.ends.push({ foreign: ['nobody'] }),
      'job-runs-on': () => void fake.ends.push({ polls: 3 }),
      'job-tells-nothing': () => void fake.ends.push({ missing: [0, 1, 2, 3, 4] }),
      'poll-fails': () => fake.fault('job', { status: 500 }),
      'job-unknown': () => fake.fault('job', { status: 404, errorCode: 'NOT_FOUND' }),
    },
  };
}

test('salesforce meets every check of the kit', async () => {
  const checks = conformanceChecks(harness());
  const failures: string[] = [];
  for (const check of checks)
    await check.run().catch((error: unknown) => failures.push(`${check.name}: ${String(error)}`));
  expect(failures).toEqual([]);
  expect(checks.map(({ name }) => name)).toEqual(
    expect.arrayContaining([
      'a removal removes its own members and no other',
      'a lost answer is unknown until it is reconciled',
      'an aborted request comes back, unknown',
      'jobs are settled by their own results, in whatever order they end',
      'a job that is not known proves nothing',
    ]),
  );
});
