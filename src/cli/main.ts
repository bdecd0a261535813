#!/usr/bin/env node
/** Entry of the command `retl`. */

import { COMPLETE_WORD } from './completion/scripts.ts';
import { showFailure } from './failures.ts';
import { Output } from './output.ts';
import { buildProgram } from './program.ts';

// `retl runs | head` closes our output early; that is no error. Whoever closes our remarks may still read the result.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? (process.exitCode ?? 0) : 1);
});
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') process.exit(1);
});

const json = process.argv.includes('--json');
try {
  if (process.argv[2] === COMPLETE_WORD) await answerShell(process.argv.slice(3));
  else await buildProgram(json).parseAsync();
} catch (error) {
  const debug = process.argv.includes('--debug');
  process.exitCode = showFailure(new Output({ json, color: false, debug }), error);
}

// The command has said all: what a library still had in mind (a call to Temporal that it would try again) is nobody's business.
await Promise.all(
  [process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write('', done))),
);
process.exit();

/** A shell asks what may stand at the cursor; it is answered, and ended, whatever may still be open. */
async function answerShell(args: readonly string[]): Promise<void> {
  const { completionLines } = await import('./completion/answer.ts');
  const lines = await completionLines(buildProgram(true), args[0] === '--' ? args.slice(1) : args);
  process.stdout.write(lines.map((line) => `${line}\n`).join(''), () => process.exit(0));
}
