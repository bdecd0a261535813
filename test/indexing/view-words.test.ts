/** The words in which servers of different versions give back the view of an index: they all say the same. */

import { expect, test } from 'vitest';
import { membershipHistory } from '../../src/indexing/postgres/history.ts';
import { saysThat } from '../../src/indexing/postgres/view.ts';

const kind = { ...membershipHistory, shown: 'mirror, at, position' };
const says = (said: string, schema = '"retl_index"') => saysThat({ schema, kind }, 12n, said);

test.each([
  [' SELECT mirror,\n    at,\n    "position"\n   FROM retl_index.rows_12;'],
  // PostgreSQL 15 and before.
  [' SELECT rows_12.mirror,\n    rows_12.at,\n    rows_12."position"\n   FROM retl_index.rows_12;'],
  // The schema is in the search path.
  [' SELECT mirror,\n    at,\n    "position"\n   FROM rows_12;'],
])('%j shows the build', (said) => expect(says(said)).toBe(true));

test('a schema whose name needs quotes is known again', () => {
  expect(says('SELECT mirror, at, "position" FROM "My ""own""".rows_12;', '"My ""own"""')).toBe(true);
});

test.each([
  ['SELECT mirror, at, "position" FROM retl_index.rows_12 WHERE false;'],
  ['SELECT mirror, at, "position" FROM retl_index.rows_1;'],
  ['SELECT mirror, at, "position" FROM other.rows_12;'],
  ['SELECT mirror AS at, at AS mirror, "position" FROM retl_index.rows_12;'],
  ['SELECT mirror, at FROM retl_index.rows_12;'],
])('%j does not', (said) => expect(says(said)).toBe(false));
