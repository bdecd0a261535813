/** docs/maintenance.md names the keys, tasks and counts that there are, and its example is valid. */

import { expect, test } from 'vitest';
import { maintenanceInput } from '../../src/config/maintenance-schema.ts';
import { COUNT_WORDS, MAINTENANCE_TASKS } from '../../src/domain/maintenance.ts';
import { PROJECT, problemsOf } from '../config/support.ts';
import { blocks, namesIn, page, section } from './pages.ts';

const PAGE = page('docs/maintenance.md');

test('every key, every task and every count stands in its table, and no other does', () => {
  expect(namesIn(section(PAGE, 'What can be said'))).toEqual(Object.keys(maintenanceInput.shape));
  expect(namesIn(section(PAGE, 'What it does'))).toEqual([...MAINTENANCE_TASKS]);
  expect(namesIn(section(PAGE, 'Did it work?'))).toEqual(Object.keys(COUNT_WORDS));
});

test('what can be said is valid as it stands', async () => {
  const [example = ''] = blocks(PAGE, 'yaml');
  expect(await problemsOf({ 'retl.yaml': PROJECT + example })).toEqual([]);
});
