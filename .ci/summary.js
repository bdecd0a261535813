// Prints `N passed, N failed, N skipped` from vitest's JSON reports; exits 1 when anything failed, or one of them ran nothing.

import { readFileSync } from 'node:fs';

const total = { passed: 0, failed: 0, skipped: 0 };
for (const path of process.argv.slice(2)) {
  let ran = 0;
  try {
    for (const file of JSON.parse(readFileSync(path, 'utf8')).testResults) ran += count(file);
  } catch (error) {
    console.error(`no test results: ${error.message}`);
  }
  if (ran === 0) process.exitCode = 1;
}
if (total.failed > 0) process.exitCode = 1;
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);

/** Adds the tests of one file; returns how many of them were tried. */
function count(file) {
  const states = file.assertionResults.map((test) => test.status);
  // A file that cannot be loaded, or whose set-up fails, is one failure even where it has no failed test.
  if (file.status === 'failed' && !states.includes('failed')) states.push('failed');
  for (const state of states) total[state === 'passed' || state === 'failed' ? state : 'skipped'] += 1;
  return states.filter((state) => state === 'passed' || state === 'failed').length;
}
