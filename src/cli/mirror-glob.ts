/** Names of mirrors as people give them to a command: one name, or a pattern with `*` and `?`. */

import { InvalidArgumentError } from 'commander';
import { mirrorArgument } from './command.ts';

/** Whether the text can stand for several names. */
export function isPattern(text: string): boolean {
  return /[*?]/.test(text);
}

/** Parses the argument `<mirror>` of commands that take a pattern too. */
export function mirrorsArgument(text: string): string {
  if (!isPattern(text)) return mirrorArgument(text);
  if (!/^[a-z0-9*?-]{1,63}$/.test(text))
    throw new InvalidArgumentError(
      'A pattern has lower-case letters, digits and `-`, `*` for any text and `?` for one character.',
    );
  return text;
}

/** The names that a name or pattern stands for, in their order. */
export function matching(names: readonly string[], text: string): readonly string[] {
  const source = text.replaceAll('*', '.*').replaceAll('?', '.');
  const pattern = new RegExp(`^${source}$`);
  return names.filter((name) => pattern.test(name));
}
