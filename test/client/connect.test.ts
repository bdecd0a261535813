/** Whether somebody has said where Temporal is: what is started at an address that nobody named is held to more. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { placeOf } from '../../src/client/connect.ts';
import { RetlError } from '../../src/domain/errors.ts';
import { TASK_QUEUE } from '../../src/domain/messages.ts';

const NOTHING = { profile: null, address: null, namespace: null, taskQueue: TASK_QUEUE };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'retl-temporal-config-'));
  const file = join(folder, 'temporal.toml');
  await writeFile(
    file,
    '[profile.there]\naddress = "there.example:7233"\n[profile.bare]\nnamespace = "shop"\n',
  );
  vi.stubEnv('TEMPORAL_CONFIG_FILE', file);
  for (const name of ['TEMPORAL_ADDRESS', 'TEMPORAL_PROFILE', 'TEMPORAL_NAMESPACE', 'TEMPORAL_API_KEY'])
    vi.stubEnv(name, undefined);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

test('an address is named by retl.yaml, by a profile or by the environment, and by nothing else', () => {
  const byDefault = { address: 'localhost:7233', isNamed: false };
  expect(placeOf(NOTHING)).toMatchObject(byDefault);
  expect(placeOf({ ...NOTHING, profile: 'bare' })).toMatchObject({ ...byDefault, namespace: 'shop' });
  expect(placeOf({ ...NOTHING, profile: 'there' })).toMatchObject({
    address: 'there.example:7233',
    isNamed: true,
  });
  expect(placeOf({ ...NOTHING, address: 'localhost:7233' })).toMatchObject({
    address: 'localhost:7233',
    isNamed: true,
  });
  vi.stubEnv('TEMPORAL_ADDRESS', 'here.example:7233');
  expect(placeOf(NOTHING)).toMatchObject({ address: 'here.example:7233', isNamed: true });
});

test('leaks: an environment configuration that cannot be read is told by a rule, and not in the words of its reader', async () => {
  await writeFile(join(folder, 'temporal.toml'), 'api_key = "s3cret" and no more TOML');
  expect(() => placeOf({ ...NOTHING, profile: 'there' })).toThrow(
    new RetlError('temporal.connect', { rule: 'environment-configuration-unreadable', profile: 'there' }),
  );
});
