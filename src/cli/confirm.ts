/** Asks a person before what cannot be taken back; a script says `--yes`. */

import { createInterface } from 'node:readline/promises';
import type { Invocation } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';

/** Help of the option `--yes`, alike everywhere. */
export const YES_HELP = 'do not ask';

/**
 * Returns where `--yes` or the person agrees.
 * @param question says what will happen, and ends before the question mark's `[y/N]`.
 * @param agree `yes` where one letter is typed too easily.
 * @throws Refusal `not-confirmed`; `usage` where nobody can be asked.
 */
export async function confirm(
  { output, options }: Invocation,
  question: string,
  agree: 'y' | 'yes' = 'y',
): Promise<void> {
  if (options.yes === true) return;
  if (!output.isInteractive)
    throw new Refusal(
      EXIT.usage,
      'usage',
      'Nobody can be asked here: add --yes. Nothing was changed.',
      '`--help` of the command shows how it is used.',
    );
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const stopped = new AbortController();
  terminal.on('SIGINT', () => stopped.abort());
  terminal.on('close', () => stopped.abort());
  const prompt = agree === 'yes' ? `${question}? Type yes to go on: ` : `${question} [y/N]? `;
  const answer = await terminal.question(prompt, { signal: stopped.signal }).catch(() => {
    process.stderr.write('\n');
    return '';
  });
  terminal.close();
  const said = answer.trim().toLowerCase();
  if (said !== 'yes' && said !== agree)
    throw new Refusal(
      EXIT.refused,
      'not-confirmed',
      'Nothing was changed.',
      `Answer with ${agree} to go on.`,
    );
}
