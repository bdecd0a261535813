/** Writes the tables of README that are made from the code: `npx tsx test/docs/write-tables.ts`. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../architecture/sources.ts';
import { page, section } from './pages.ts';
import { errorRows, exitRows, tableText } from './tables.ts';

const TABLES: readonly (readonly [heading: string, table: string])[] = [
  ['Exit codes', tableText(['code', 'meaning'], exitRows(), [0])],
  ['Error codes', tableText(['code', 'meaning', 'what to do'], errorRows())],
];

let text = page('README.md');
for (const [heading, table] of TABLES)
  text = text.replace(section(text, heading), () => `${heading}\n\n${table}\n\n`);
writeFileSync(join(ROOT, 'README.md'), text);
