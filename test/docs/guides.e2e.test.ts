/** Every command of the guides is run, in the order in which a new user reads them, and shows what they say it shows. */

import { readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT } from '../architecture/sources.ts';
import { Reader, stepsOf } from './guide.ts';
import { page } from './pages.ts';

/** Each goes on where the one before has stopped. */
const GUIDES = [
  'first-mirror',
  'own-query-and-destination',
  'worrying-removal',
  'blocked-or-parked',
  'changing-a-mirror',
];

let home: string;
let reader: Reader;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'retl-reader-'));
  reader = new Reader(home);
});

afterAll(async () => {
  await reader?.leave();
  await rm(home, { recursive: true, force: true });
});

test('every guide is among those that are run', () => {
  const files = readdirSync(join(ROOT, 'docs/guides')).map((name) => name.replace(/\.md$/, ''));
  expect(files.toSorted()).toEqual([...GUIDES].toSorted());
});

test.each(GUIDES)(
  '%s does what it says',
  async (guide) => {
    const text = page(`docs/guides/${guide}.md`);
    expect(text).toMatch(/^# .*\?$/m);
    const steps = stepsOf(text);
    expect(steps.length).toBeGreaterThan(3);
    for (const step of steps) await reader.follow(step);
  },
  180_000,
);
