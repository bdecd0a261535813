/** The pages of docs are held to the code: what it knows stands there, and nothing else. */

import { expect, test } from 'vitest';
import { httpOptionsSchema } from '../../src/destinations/http/options.ts';
import type { BatchOutcome, Capabilities } from '../../src/destinations/port.ts';
import { optionsSchema as tableOptionsSchema } from '../../src/destinations/postgres/options.ts';
import { optionsSchema as objectOptionsSchema } from '../../src/destinations/s3/options.ts';
import { salesforceOptionsSchema } from '../../src/destinations/salesforce/options.ts';
import { MAX_JSON_DEPTH } from '../../src/domain/canonical-json.ts';
import { MAX_MEMBERS_PER_ROW } from '../../src/domain/member.ts';
import type { Normalization } from '../../src/domain/settings.ts';
import { MAX_KEY_BYTES } from '../../src/domain/source-key.ts';
import type { InvalidValueRule } from '../../src/domain/source-row.ts';
import { namesIn, page, section } from './pages.ts';

/** Total, so that a new kind cannot be forgotten. */
const OUTCOMES: { readonly [Kind in BatchOutcome['kind']]: true } = {
  settled: true,
  accepted: true,
  staged: true,
  'not-applied': true,
  refused: true,
  misconfigured: true,
  unknown: true,
};
const RECOVERIES: { readonly [Kind in Capabilities['recovery']]: true } = {
  idempotent: true,
  lookup: true,
  manual: true,
};
const CAPABILITIES: { readonly [Name in keyof Capabilities]-?: true } = {
  strategies: true,
  explicitRemoval: true,
  batchDelivery: true,
  recovery: true,
  lastCopyDecides: true,
  visible: true,
  maxRows: true,
  maxBytes: true,
  maxInFlight: true,
  maxStaged: true,
  longestRequestMs: true,
  identityFolding: true,
  lists: true,
};
const STEPS: { readonly [Step in Normalization]: true } = {
  trim: true,
  lower: true,
  email: true,
  phone: true,
};
const RULES: { readonly [Rule in InvalidValueRule]: true } = {
  'not-finite': true,
  'nul-character': true,
  'lone-surrogate': true,
  'inexact-number': true,
  'too-deep': true,
  malformed: true,
};

test.each([
  ['docs/writing-an-adapter.md', 'Outcomes', Object.keys(OUTCOMES)],
  ['docs/writing-an-adapter.md', 'Capabilities', [...Object.keys(CAPABILITIES), ...Object.keys(RECOVERIES)]],
  ['docs/mapping.md', 'Normalisation', Object.keys(STEPS)],
  ['docs/destinations.md', '`postgres`: a table', Object.keys(tableOptionsSchema.shape)],
  ['docs/destinations.md', '`s3`: a set of objects', Object.keys(objectOptionsSchema.shape)],
  ['docs/destinations.md', '`http`: an API', Object.keys(httpOptionsSchema.shape)],
  ['docs/destinations.md', '`salesforce`: records of an object', Object.keys(salesforceOptionsSchema.shape)],
])('%s, "%s": the table names all of them, and no other', (path, heading, names) => {
  expect([...namesIn(section(page(path), heading))].sort()).toEqual([...names].sort());
});

test('docs/mapping.md has every rule that a value can break, and the limits of the code', () => {
  const text = page('docs/mapping.md');
  expect(namesIn(section(text, 'Values, exactly'))).toEqual(expect.arrayContaining(Object.keys(RULES)));
  expect(text).toContain(`${MAX_MEMBERS_PER_ROW} at most`);
  expect(text).toContain(`nested deeper than ${MAX_JSON_DEPTH}`);
  expect(text).toContain(`at most ${MAX_KEY_BYTES.toLocaleString('en-US')} bytes`);
});
