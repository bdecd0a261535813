import { expect, test } from 'vitest';
import { settingsText } from '../../src/config/settings-text.ts';
import { MIRROR, PROJECT, settingsOf } from './support.ts';

test('every mirror has its tags, one or many, and none where none are written', async () => {
  const { tags } = await settingsOf({
    'retl.yaml': PROJECT,
    'mirrors/a.yaml': `${MIRROR}tags: nightly\n`,
    'mirrors/b.yaml': `${MIRROR}tags: [eu, nightly]\n`,
    'mirrors/c.yaml': MIRROR,
  });
  expect(tags).toEqual({ a: ['nightly'], b: ['eu', 'nightly'], c: [] });
});

test('tags are no part of a revision: a mirror with another tag is the mirror that it was', async () => {
  const text = async (mirror: string): Promise<readonly string[]> =>
    (await settingsOf({ 'retl.yaml': PROJECT, 'mirrors/vip.yaml': mirror })).mirrors.map(settingsText);
  expect(await text(`${MIRROR}tags: [eu]\n`)).toEqual(await text(MIRROR));
});
