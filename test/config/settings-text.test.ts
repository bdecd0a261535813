import { expect, test } from 'vitest';
import { parseSettings, settingsText } from '../../src/config/settings-text.ts';
import { RetlError } from '../../src/domain/errors.ts';
import { MIRROR, mirrorWith, PROJECT, SECRETS, settingsOf } from './support.ts';

async function settings(old = 'baseline', replacement = 'baseline') {
  const [mirror] = (await settingsOf(mirrorWith(old, replacement))).mirrors;
  if (mirror === undefined) throw new Error('no mirror was read');
  return mirror;
}

test('settings come back from their text as they were', async () => {
  const mirror = await settings('plan: plan', 'plan: plan, n: { value: 7 }, z: { column: z, as: number }');
  expect(parseSettings(settingsText(mirror))).toEqual(mirror);
});

test('equal settings give equal bytes, however they were written', async () => {
  const reordered = MIRROR.split('\n')
    .filter((line) => !line.startsWith('baseline'))
    .join('\n');
  const [other] = (
    await settingsOf({
      'retl.yaml': PROJECT,
      'mirrors/vip.yaml': `baseline: { kind: new-empty }\n${reordered}`,
    })
  ).mirrors;
  if (other === undefined) throw new Error('no mirror was read');
  expect(settingsText(other)).toBe(settingsText(await settings()));
});

test('different settings give different bytes', async () => {
  expect(settingsText(await settings('max_removals: 20%', 'max_removals: 21%'))).not.toBe(
    settingsText(await settings()),
  );
});

test('leaks: secrets stand in a revision by reference only', async () => {
  const text = settingsText(await settings());
  expect(text).toContain('env:SHOP_URL');
  for (const secret of Object.values(SECRETS)) expect(text).not.toContain(secret);
});

test.each([
  ['no JSON', 'x'],
  ['another format', '{"format":2,"settings":{}}'],
  ['an unknown key', '{"format":1,"settings":{},"more":1}'],
  ['nothing', ''],
])('a revision that holds %s is refused', (_name, text) => {
  expect(() => parseSettings(text)).toThrow(RetlError);
  expect(() => parseSettings(text)).toThrow('config.revision');
});

test('a revision without a key that this release needs is refused, and the place is named', async () => {
  const text = settingsText(await settings()).replace('"resumeMaxAgeMs":86400000,', '');
  expect(() => parseSettings(text)).toThrow('settings.resumeMaxAgeMs');
});
