/** `indexes` of retl.yaml: what fits the system that an index lives in, and what is told where it does not. */

import { expect, test } from 'vitest';
import { PROJECT, problemsOf, SECRETS, settingsOf } from './support.ts';

const files = (index: string) => ({ 'retl.yaml': `${PROJECT}indexes:\n  people: ${index}\n` });
const env = { ...SECRETS, KEY: 'canary-key', CA: 'canary-ca', SEARCH_URL: 'https://search.example.org' };

test('an index lives in the journal’s database where nothing else is said', async () => {
  const { indexes } = await settingsOf(files('{ kind: membership-search }'));
  const here = { url: null, schema: 'retl_index', engine: null, holdsLog: false };
  expect(indexes).toEqual([{ name: 'people', kind: 'membership-search', ...here }]);
});

test('an index in a search engine keeps what is needed to enter it, by reference', async () => {
  const written = `{ kind: membership-search, engine: opensearch, url: "\${env:SEARCH_URL}", api_key: "\${env:KEY}", ca: "\${env:CA}", prefix: retl-, shards: 3, replicas: 0 }`;
  const { indexes } = await settingsOf(files(written), { env });
  const options = {
    url: `\${env:SEARCH_URL}`,
    api_key: `\${env:KEY}`,
    ca: `\${env:CA}`,
    prefix: 'retl-',
    shards: 3,
    replicas: 0,
  };
  expect(indexes[0]).toMatchObject({ url: null, engine: { system: 'opensearch', options } });
});

const SEARCH = 'kind: membership-search, engine: elasticsearch';

test.each([
  [
    '{ kind: membership-search, shards: 2 }',
    ['indexes.people.shards: This is for an index in a search engine'],
  ],
  [
    '{ kind: membership-search, url: "https://search" }',
    ['indexes.people.url: This is no URL of a PostgreSQL database'],
  ],
  [
    `{ ${SEARCH}, url: "https://search/?canary=1", ca: canary }`,
    [
      'indexes.people.url: This must be an http or https URL without query and fragment',
      'indexes.people.ca: This must be one or more certificates in PEM',
    ],
  ],
  [`{ ${SEARCH} }`, ['indexes.people.url: `url` is missing']],
  [`{ ${SEARCH}, url: "ftp://search" }`, ['indexes.people.url: This must be an http or https URL']],
  [
    `{ ${SEARCH}, url: "http://search:9200" }`,
    ['indexes.people.url: This may be plain http on this machine only'],
  ],
  ['{ kind: membership-search, engine: solr }', ['indexes.people.engine: This is none of the valid values']],
  [
    // Each fault at its own place, and all of them at once.
    `{ kind: membership-history, engine: opensearch, url: "https://u:p@search", schema: x, password: "\${env:KEY}", replicas: -1, shrads: 2 }`,
    [
      'indexes.people.kind: This must be membership-search in a search engine',
      'indexes.people.url: A secret stands here in plain text',
      'indexes.people.schema: This is for an index in PostgreSQL',
      'indexes.people.username: `username` is missing. Give both or neither.',
      'indexes.people.replicas: This must be at least 0',
      'indexes.people.shrads: The key `shrads` is unknown. Did you mean `shards`?',
    ],
  ],
  [
    `{ ${SEARCH}, url: "https://search", username: canary, password: canary, api_key: "\${env:KEY}" }`,
    ['indexes.people.api_key: This stands beside `username`', 'password: A secret stands here in plain text'],
  ],
])('%s is refused, at each place', async (written, told) => {
  const problems = await problemsOf(files(written), { env });
  for (const one of told) expect(problems.join('\n')).toContain(one);
  expect(problems).toHaveLength(told.length);
  expect(problems.join()).not.toContain('canary');
});

test('one that is retired is none of those that are followed, and still says where it lives', async () => {
  const written = `{ kind: membership-search, engine: opensearch, url: "\${env:SEARCH_URL}", prefix: retl-, retired: true }`;
  const { indexes, retiredIndexes } = await settingsOf(files(written), { env });
  expect(indexes).toEqual([]);
  const options = { url: `\${env:SEARCH_URL}`, prefix: 'retl-' };
  expect(retiredIndexes).toMatchObject([{ name: 'people', engine: { system: 'opensearch', options } }]);
});
