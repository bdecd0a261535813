// Prints `N passed, N failed, N skipped` from vitest's JSON report; exits 1 when anything failed or nothing ran.

import { readFileSync } from 'node:fs';

let passed = 0;
let failed = 0;
let skipped = 0;
try {
  const report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
  for (const file of report.testResults) {
    // A file that cannot be loaded, or whose set-up fails, is one failure even where it has no failed test.
    const isFailedWhole =
      file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed');
    if (isFailedWhole) failed += 1;
    for (const test of file.assertionResults) {
      if (test.status === 'passed') passed += 1;
      else if (test.status === 'failed') failed += 1;
      else skipped += 1;
    }
  }
} catch (error) {
  console.error(`no test results: ${error.message}`);
  process.exitCode = 1;
}
if (failed > 0 || passed === 0) process.exitCode = 1;
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
