#!/usr/bin/env node
/** Entry of the command `retl`. */

import { showFailure } from './failures.ts';
import { Output } from './output.ts';
import { buildProgram } from './program.ts';

// `retl runs | head` closes our output early; that is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? (process.exitCode ?? 0) : 1);
});

const json = process.argv.includes('--json');
try {
  await buildProgram(json).parseAsync();
} catch (error) {
  const debug = process.argv.includes('--debug');
  process.exitCode = showFailure(new Output({ json, color: false, debug }), error);
}
