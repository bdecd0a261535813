/** docs/log.md names what a verification can find. */

import { expect, test } from 'vitest';
import { BROKEN } from '../../src/cli/log-view.ts';
import { namesIn, page, section } from './pages.ts';

test('docs/log.md has a row for each rule that `retl log verify` names, in the order in which it looks', () => {
  expect(namesIn(section(page('docs/log.md'), 'Was it altered?'))).toEqual(Object.keys(BROKEN));
});
