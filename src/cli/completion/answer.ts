/** Answers a shell that asks what may stand at the cursor. */

import type { Command } from 'commander';
import { harmless } from '../value-text.ts';
import { complete } from './candidates.ts';
import { projectNames } from './names.ts';
import { FILES_LINE, FOLDERS_LINE } from './scripts.ts';

/** @param words all after the program's name; the last is being typed. @returns the lines to print. */
export async function completionLines(
  program: Command,
  words: readonly string[],
): Promise<readonly string[]> {
  const after = (option: string) => {
    const at = words.indexOf(option);
    return at === -1 ? undefined : words[at + 1] || undefined;
  };
  const names = projectNames(after('--project'), after('--env'));
  const found = await complete(program, words, names);
  if (found.kind !== 'candidates') return [found.kind === 'files' ? FILES_LINE : FOLDERS_LINE];
  return found.candidates.map(({ value, about }) => `${harmless(value)}\t${harmless(about)}`);
}
