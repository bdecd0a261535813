/** `maintenance` of retl.yaml: on by default, nothing kept for less than a day, and an environment's own words before the file's. */

import { expect, test } from 'vitest';
import { PROJECT, problemsOf, settingsOf } from './support.ts';

const DAY_MS = 86_400_000;
const files = (maintenance: string) => ({ 'retl.yaml': `${PROJECT}maintenance: ${maintenance}\n` });
const read = async (maintenance: string) => (await settingsOf(files(maintenance))).maintenance;

test('it runs once a day unless something else is said', async () => {
  const left = (await settingsOf({ 'retl.yaml': PROJECT })).maintenance;
  expect(left.schedule).toMatchObject({ times: { kind: 'every', everyMs: DAY_MS } });
  expect(await read('{}')).toEqual(left);
  expect(await read('{ enabled: true, keep_receipts: 30d, keep_candidates: 7d }')).toEqual(left);
});

test('everything that it can say is read', async () => {
  const written =
    '{ schedule: { cron: "0 3 * * *", time_zone: Europe/Berlin }, keep_receipts: 24h, keep_candidates: 2d, compact: 90d }';
  expect(await read(written)).toMatchObject({
    schedule: { times: { kind: 'cron', cron: '0 3 * * *', timeZone: 'Europe/Berlin' } },
    keepReceiptsMs: DAY_MS,
    keepCandidatesMs: 2 * DAY_MS,
    compactMs: 90 * DAY_MS,
  });
  expect(await read('{ enabled: false, keep_receipts: 3650d }')).toMatchObject({
    schedule: null,
    keepReceiptsMs: 3650 * DAY_MS,
  });
});

test.each([
  [
    '{ keep_receipts: 23h }',
    /maintenance\.keep_receipts: .*Nothing is taken away before it is a day old.*1d/,
  ],
  ['{ keep_candidates: 86399s }', /maintenance\.keep_candidates: .*a day old/],
  ['{ compact: 0s }', /maintenance\.compact: .*a day old/],
  ['{ keep_receipts: 7 }', /maintenance\.keep_receipts: .*a duration such as/],
  ['{ every: 1d }', /maintenance\.every: The key `every` is unknown\./],
  ['{ schedule: { every: 1d, cron: "@daily" } }', /maintenance\.schedule: .*either `every` or `cron`/],
])('%s is refused', async (written, told) => {
  expect(await problemsOf(files(written))).toEqual([expect.stringMatching(told)]);
});

test('an environment says what differs, key by key', async () => {
  const environments =
    'environments:\n  staging: { journal: { url: x }, maintenance: { keep_receipts: 2d } }\n';
  const project = { 'retl.yaml': `${PROJECT}maintenance: { keep_candidates: 3d }\n${environments}` };
  const { maintenance } = await settingsOf(project, { environment: 'staging' });
  expect(maintenance).toMatchObject({ keepReceiptsMs: 2 * DAY_MS, keepCandidatesMs: 3 * DAY_MS });
});
