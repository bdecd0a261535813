/** Removals of `salesforce`: records are looked up by the external ID, and deleted by their own IDs. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { writeProgress } from '../../src/destinations/salesforce/progress.ts';
import { FakeSalesforce } from '../support/fake-salesforce.ts';
import { KEY, parseCsv } from '../support/fake-salesforce-org.ts';
import { CLIENT, openSalesforce, poll, reconcile, record } from '../support/salesforce-writer.ts';

let fake: FakeSalesforce;

beforeAll(async () => {
  fake = await FakeSalesforce.start(CLIENT);
});
afterEach(() => fake.reset());
afterAll(() => fake.stop());

const jobs = () => [...fake.org.jobs.values()];
const keys = () => fake.org.live.map(({ fields }) => fields[KEY]).sort();

describe('a removal', () => {
  const held = (...names: string[]) => names.map((name) => fake.org.add({ [KEY]: name }));

  async function remove(names: readonly string[], options: object = {}) {
    const open = await openSalesforce(fake.url, options);
    const sent = open.request(
      'remove',
      names.map((name) => record(name)),
    );
    const outcome = await open.writer.remove(sent);
    return { open, sent, outcome, end: () => poll(open, sent, outcome) };
  }

  test('looks the records up, and deletes them by their IDs', async () => {
    const [one, two] = held('a', 'b', 'c');
    const { end } = await remove(['a', 'b']);
    expect(parseCsv(jobs()[0]?.data ?? '')).toEqual([['Id'], [one?.Id], [two?.Id]]);
    expect(jobs()[0]?.operation).toBe('delete');
    expect(await end()).toMatchObject({
      kind: 'settled',
      outcomes: [{ kind: 'accepted' }, { kind: 'accepted' }],
    });
    expect(keys()).toEqual(['c']);
  });

  test('survives a crash with the records it had found, also where one is gone meanwhile', async () => {
    const [, two] = held('a', 'b');
    const open = await openSalesforce(fake.url);
    const sent = open.request('remove', [record('a'), record('b')]);
    fake.fault('close', 'lost', false);
    expect((await open.writer.remove(sent)).kind).toBe('unknown');
    if (two !== undefined) two.IsDeleted = true;
    const found = await reconcile(fake.url, open, sent);
    expect(await poll(open, sent, found)).toMatchObject({
      kind: 'settled',
      outcomes: [{ kind: 'accepted' }, { kind: 'accepted' }],
    });
    expect(fake.org.effects).toEqual(['delete a']);
  });

  test('of a record in the recycle bin is done already; without any other it needs no job', async () => {
    for (const deleted of held('a', 'b')) deleted.IsDeleted = true;
    const { outcome } = await remove(['a', 'b']);
    expect(outcome).toMatchObject({
      kind: 'settled',
      outcomes: [{ kind: 'accepted' }, { kind: 'accepted' }],
    });
    expect(fake.steps).toEqual(['query']);
  });

  test('of a record that cannot be found is rejected: what the account cannot see may be there', async () => {
    held('a');
    const { end } = await remove(['a', 'nowhere']);
    expect(await end()).toMatchObject({
      kind: 'settled',
      outcomes: [{ kind: 'accepted' }, { kind: 'rejected', code: 'record-not-found' }],
    });
    const vouched = await remove(['nowhere'], { missing: 'accepted' });
    expect(vouched.outcome).toMatchObject({ kind: 'settled', outcomes: [{ kind: 'accepted' }] });
  });

  test('of a key that several records have is rejected: nobody can say which', async () => {
    held('a', 'A', 'b');
    const { end } = await remove(['a', 'b']);
    expect(await end()).toMatchObject({
      outcomes: [{ kind: 'rejected', code: 'several-records' }, { kind: 'accepted' }],
    });
    expect(keys()).toEqual(['A', 'a']);
  });

  test('co-writer, key-concat: no text in a key reaches beyond its own record', async () => {
    const odd = [`O'Brien`, `x') OR Id != '`, 'a\\', '"', 'line\nend', 'ü😀'];
    held(...odd, 'other');
    expect((await (await remove(odd)).end()).kind).toBe('settled');
    expect(keys()).toEqual(['other']);
  });

  test('of many members asks in pieces that a URL can hold', async () => {
    const names = Array.from({ length: 450 }, (_, index) => `member-${index}-${'x'.repeat(40)}`);
    held(...names);
    expect((await (await remove(names)).end()).kind).toBe('settled');
    const queries = fake.calls.filter(({ step }) => step === 'query');
    expect(queries.length).toBeGreaterThan(2);
    expect(Math.max(...queries.map(({ path }) => path.length))).toBeLessThan(8_000);
    expect(keys()).toEqual([]);
  });

  test.each([
    [{ status: 500 }, 'not-applied'],
    ['lost', 'not-applied'],
    [{ status: 400, errorCode: 'INVALID_FIELD' }, 'misconfigured'],
    [{ status: 200, body: '{"done":true,"records":[{"Id":"?"}]}' }, 'not-applied'],
  ] as const)('whose look-up gets %j has sent nothing: %s', async (answer, kind) => {
    held('a');
    fake.fault('query', answer);
    expect((await remove(['a'])).outcome.kind).toBe(kind);
    expect(jobs()).toEqual([]);
  });

  test('of as many members as a job may have saves no more than the journal keeps', () => {
    const targets = Array.from({ length: 10_000 }, () => 'a01000000000001AAA');
    expect(writeProgress({ job: '750000000000001AAA', step: 'uploaded', targets }).length).toBeLessThan(
      1_048_576,
    );
  });
});
