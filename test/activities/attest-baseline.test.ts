/** Who may vouch for what: a destination that can be asked goes before anybody's word (design.md section 4, "Strategies"). */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { attestable } from '../../src/activities/attest-baseline.ts';
import { checkMirror } from '../../src/activities/check.ts';
import { httpDestination } from '../../src/destinations/http/index.ts';
import type { MirrorSettings } from '../../src/domain/settings.ts';
import { modelSettings } from '../model/adapters.ts';
import { FakeAudience } from '../support/fake-audience.ts';

let audience: FakeAudience;
beforeAll(async () => {
  audience = await FakeAudience.start({ idFields: ['id'] });
});
afterAll(() => audience.stop());

const LOOK = { verify_empty: { path: '/members', count: '/count' } };

const logger = { info: () => undefined, warn: () => undefined };

function mirror(
  options: MirrorSettings['destination']['options'],
  kind: MirrorSettings['baseline']['kind'] = 'new-empty',
  url = audience.url,
) {
  const settings: MirrorSettings = {
    ...modelSettings('vouched', { rows: 1_000, inFlight: 8, kind: 'manual', asynchronous: false }),
    baseline: { kind, attested: null },
    destination: {
      type: 'http',
      connection: 'api',
      connectionOptions: { base_url: url },
      options: {
        upsert: { method: 'POST', path: '/members' },
        remove: { method: 'DELETE', path: '/members' },
        ...options,
      },
    },
  };
  const configuration = {
    mirror: async () => settings,
    text: () => '',
    parse: () => settings,
    resolve: (resolved: MirrorSettings['destination']['options']) => resolved,
    projection: () => Promise.reject(new Error('none')),
  };
  return { deps: { sources: [], destinations: [httpDestination], configuration, logger }, settings };
}

function asked(...of: Parameters<typeof mirror>): Promise<string> {
  const { deps, settings } = mirror(...of);
  return attestable(deps, settings, AbortSignal.timeout(10_000));
}

/** Codes that a check finds about the destination. */
async function checked(isKnown: boolean): Promise<readonly string[]> {
  const { deps, settings } = mirror({});
  const codes: string[] = [];
  for await (const line of checkMirror(deps, settings, isKnown))
    if (line.kind === 'problem' && line.subject === 'destination') codes.push(line.code);
  return codes;
}

test('where nothing can be read a person is asked, about the target that the settings name', async () => {
  expect(await asked({})).toContain(audience.url);
  expect(audience.requests).toEqual([]);
});

test('where the destination shows that it is empty nobody need vouch; where it is not, nobody can', async () => {
  await expect(asked(LOOK)).rejects.toMatchObject({ code: 'run.baseline-seen' });
  const body = JSON.stringify([{ id: 'a' }]);
  const headers = { 'content-type': 'application/json' };
  expect((await fetch(`${audience.url}/members`, { method: 'POST', headers, body })).ok).toBe(true);
  await expect(asked(LOOK)).rejects.toMatchObject({ code: 'destination.not-empty' });
});

test('a look that fails is no leave to vouch', async () => {
  await expect(asked(LOOK, 'new-empty', 'http://127.0.0.1:1')).rejects.toMatchObject({
    code: 'destination.unavailable',
  });
  await expect(asked({ verify_empty: { path: '/members', count: '/nowhere' } })).rejects.toMatchObject({
    code: 'destination.misconfigured',
  });
});

test('what a tracked target holds is imported, and not vouched for', async () => {
  await expect(asked({}, 'tracked')).rejects.toMatchObject({ code: 'run.baseline-not-new-empty' });
});

test('a check misses the word until the journal has it', async () => {
  expect(await checked(false)).toEqual(['destination.baseline-unknown']);
  expect(await checked(true)).toEqual([]);
});
