/** Settings of `salesforce`, its CSV, and what it finds out before a first write. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { conformanceContext } from '../../src/destinations/conformance-session.ts';
import { readCsv, writeCsv } from '../../src/destinations/salesforce/csv.ts';
import { salesforceDestination } from '../../src/destinations/salesforce/index.ts';
import { FakeSalesforce } from '../support/fake-salesforce.ts';
import { KEY, parseCsv } from '../support/fake-salesforce-org.ts';
import { CLIENT, openSalesforce, record, salesforceSettings } from '../support/salesforce-writer.ts';

const ORG = 'https://acme.my.salesforce.com';
const AUTH = { client_id: 'c', client_secret: 's' };

function problems(schema: 'connectionSchema' | 'optionsSchema', value: object): readonly string[] {
  const result = salesforceDestination[schema].safeParse(value);
  return result.success ? [] : result.error.issues.map((i) => `${i.path.join('.')}: ${i.message}`);
}

describe('settings', () => {
  test.each([
    [
      'plain http',
      { instance_url: 'http://acme.my.salesforce.com', auth: AUTH },
      'instance_url: must be an https URL',
    ],
    ['a path', { instance_url: `${ORG}/services`, auth: AUTH }, 'instance_url: must be'],
    ['no credentials', { instance_url: ORG, auth: { client_id: 'c' } }, 'auth: must be'],
    [
      'an old version',
      { instance_url: ORG, auth: AUTH, api_version: '39.0' },
      'api_version: must be a version',
    ],
    ['an unknown key', { instance_url: ORG, auth: AUTH, user: 'x' }, ': Unrecognized key'],
  ])('a connection with %s is refused', (_, value, start) => {
    expect(problems('connectionSchema', value)[0]).toMatch(new RegExp(`^${start}`));
  });

  test.each([
    ['an object that is no name', { object: 'Member c', external_id: KEY }, 'object: must be an API name'],
    [
      'an external ID that could be SOQL',
      { object: 'M__c', external_id: 'Id, Name' },
      'external_id: must be',
    ],
    [
      'a column that is no name',
      { object: 'M__c', external_id: KEY, columns: { a: '1' } },
      'columns.a: must be',
    ],
  ])('options with %s are refused', (_, value, start) => {
    expect(problems('optionsSchema', value)[0]).toMatch(new RegExp(`^${start}`));
  });

  test('the mapping must fit: one identity field, each column once, names that the API can have', () => {
    const { options } = salesforceSettings(ORG, { columns: { plan: 'Plan__c', gone: 'X__c' } });
    const check = (identity: string[], payload: string[]) =>
      salesforceDestination.checkFields(options, identity, payload);
    expect(check(['email'], ['plan', 'gone'])).toEqual([]);
    expect(check(['email', 'list'], ['plan', 'gone'])[0]).toContain('one identity field');
    expect(check(['email'], ['plan', 'gone', 'plan__C'])[0]).toContain('two fields would be written');
    expect(check(['email'], ['plan', 'gone', 'full name'])[0]).toContain('not the API name');
    expect(check(['email'], ['plan'])[0]).toContain('"gone" is not a field of the mapping');
    expect(check(['email'], ['plan', 'gone', 'KEY__C'])[0]).toContain('two fields');
    expect(check(['plan'], ['gone'])[0]).toContain('is the identity');
  });

  test('what a record cannot hold is refused before the seal', () => {
    const schema = salesforceDestination.payloadSchemas?.(salesforceSettings(ORG).options)?.upsert;
    const fits = (value: unknown) => schema?.safeParse({ [KEY]: 'a', Plan__c: value }).success;
    expect([null, '', 'x', 1, true, '#n/a'].map(fits)).toEqual([true, true, true, true, true, true]);
    expect(['#N/A', [], { a: 1 }, '\ud83d'].map(fits)).toEqual([false, false, false, false]);
  });

  test('jobs are asynchronous, can be asked about, and hold as many rows as one batch of the API', () => {
    const { connection, options } = salesforceSettings(ORG, { max_jobs: 3 }, { timeout_ms: 60_000 });
    expect(salesforceDestination.capabilities(connection, options)).toMatchObject({
      batchDelivery: 'asynchronous',
      recovery: 'lookup',
      maxRows: 10_000,
      maxStaged: 3,
      longestRequestMs: 540_000,
      identityFolding: ['case', 'text'],
    });
  });
});

describe('CSV', () => {
  test.each([
    ['plain', 'a,b\nc,d\n'],
    ['no line end at the end', 'a,b\nc,d'],
    ['CRLF', 'a,b\r\nc,d\r\n'],
    ['a byte order mark', '\ufeffa,b\nc,d\n'],
    ['quotes', '"a","b"\n"c","d"\n'],
  ])('is read with %s', (_, text) => {
    expect(readCsv(text)).toEqual({ header: ['a', 'b'], rows: [['c', 'd']] });
  });

  test.each([
    ['a quote left open', 'a,b\n"c,d\n'],
    ['something behind a quote', 'a,b\n"c"x,d\n'],
    ['a quote within', 'a,b\nc"x",d\n'],
    ['a short row', 'a,b\nc\n'],
    ['a long row', 'a,b\nc,d,e\n'],
  ])('is not read with %s', (_, text) => {
    expect(readCsv(text)).toBeNull();
  });

  test('nul+surrogates: whatever a cell holds comes back as it was, also by another reader', () => {
    const odd = [
      '',
      ' a ',
      '"',
      '""',
      ',',
      '\n',
      '\r\n',
      '\r',
      'ü😀',
      '#n/a',
      "'",
      '=1+1',
      '\ufeff',
      '0012',
      'a"b,c\nd',
    ];
    const text = writeCsv(
      ['x', 'y'],
      odd.map((value) => [{ kind: 'text', text: value }, { kind: 'absent' }]),
    );
    const rows = odd.map((value) => [value, '']);
    expect(readCsv(text)).toEqual({ header: ['x', 'y'], rows });
    expect(parseCsv(text)).toEqual([['x', 'y'], ...rows]);
  });

  test('nothing at all is a table without rows', () => {
    expect(readCsv('')).toEqual({ header: [], rows: [] });
    expect(readCsv('a,b\n')).toEqual({ header: ['a', 'b'], rows: [] });
    expect(readCsv('a,\n')).toEqual({ header: ['a', ''], rows: [] });
    expect(readCsv('a,')).toEqual({ header: ['a', ''], rows: [] });
  });
});

describe('before a first write', () => {
  let fake: FakeSalesforce;
  beforeAll(async () => {
    fake = await FakeSalesforce.start(CLIENT);
  });
  afterEach(() => fake.reset());
  afterAll(() => fake.stop());

  const codes = async (options: object = {}, payload: string[] = ['Plan__c']) => {
    const fields = [{ identity: [KEY], payload }];
    const { writer } = await openSalesforce(fake.url, options, { fields });
    return (await writer.preflight()).map(({ code, transient }) => (transient === true ? `${code}?` : code));
  };

  test('an object with its rights, its key and its fields is ready', async () => {
    expect(await codes()).toEqual([]);
    expect(fake.steps).toEqual(['describe']);
  });

  test.each([
    ['late-privilege: no right to delete', { object: { deletable: false } }, ['object-not-deletable']],
    ['no right to create', { object: { createable: false } }, ['object-not-createable']],
    ['no external ID', { key: { externalId: false, idLookup: false } }, ['external-id-missing']],
    ['a key that is not unique', { key: { unique: false } }, ['external-id-not-unique']],
    ['case-only: a key that knows case', { key: { caseSensitive: true } }, ['identity-folding-differs']],
  ])('%s surfaces', async (_, change, expected) => {
    fake.describe = change;
    expect(await codes()).toEqual(expected);
  });

  test('fields that are not there surface, and a folding that does not fit', async () => {
    expect(await codes({}, ['Nowhere__c'])).toEqual(['field-missing']);
    expect(await codes({ identity_folding: [] })).toEqual(['identity-folding-differs']);
  });

  test.each([
    ['an unknown object', { status: 404, errorCode: 'NOT_FOUND' }, ['http-404:NOT_FOUND']],
    ['missing rights', { status: 403, errorCode: 'API_DISABLED_FOR_ORG' }, ['http-403:API_DISABLED_FOR_ORG']],
    ['a busy org', { status: 503 }, ['http-503:UNKNOWN_EXCEPTION?']],
    [
      'a page',
      { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>' },
      ['reply-is-a-page?'],
    ],
  ])('%s is told as what it is', async (_, answer, expected) => {
    fake.fault('describe', answer);
    expect(await codes()).toEqual(expected);
  });

  test('a target is empty where no record has the external ID; what others hold does not count', async () => {
    const { writer } = await openSalesforce(fake.url);
    fake.org.add({ Name: 'somebody else’s' });
    expect(await writer.checkEmpty()).toEqual({ kind: 'empty' });
    fake.org.add({ [KEY]: 'a' });
    expect(await writer.checkEmpty()).toEqual({ kind: 'not-empty' });
    fake.fault('query', { status: 500 });
    expect(await writer.checkEmpty()).toMatchObject({ kind: 'failed' });
    fake.fault('query', { status: 400, errorCode: 'INVALID_FIELD' });
    expect(await writer.checkEmpty()).toMatchObject({ kind: 'misconfigured' });
  });

  test('a refresh token is used where there is one, and a token that has lapsed is replaced once', async () => {
    const auth = {
      client_id: CLIENT.clientId,
      client_secret: CLIENT.clientSecret,
      refresh_token: CLIENT.refreshToken,
    };
    const { connection, options } = salesforceSettings(fake.url, {}, { auth });
    const context = conformanceContext(new AbortController().signal);
    const writer = await salesforceDestination.open(connection, options, context);
    expect((await writer.preflight()).length).toBe(0);
    expect(fake.calls[0]?.body).toContain('grant_type=refresh_token');
    fake.revokeTokens();
    expect((await writer.preflight()).length).toBe(0);
    expect(fake.calls.filter(({ step }) => step === 'token').length).toBe(2);
    await writer.close();
  });

  test('leaks: neither the secret nor a token stands in what is kept', async () => {
    const open = await openSalesforce(fake.url);
    await open.writer.preflight();
    const message = `${CLIENT.clientSecret} ${fake.token}`;
    fake.fault('upload', { status: 400, body: JSON.stringify([{ errorCode: 'X', message }]) });
    const outcome = await open.writer.upsert(open.request('upsert', [record('a')]));
    expect(outcome).toMatchObject({ kind: 'refused', reason: '[secret] [secret]' });
  });
});
