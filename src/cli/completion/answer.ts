/** Answers a shell that asks what may stand at the cursor. */

import type { Command } from 'commander';
import { harmless } from '../value-text.ts';
import { complete } from './candidates.ts';
import { projectNames } from './names.ts';
import { FOLDERS_LINE } from './scripts.ts';

/** @param words all after the program's name; the last is being typed. @returns the lines to print. */
export async function completionLines(
  program: Command,
  words: readonly string[],
): Promise<readonly string[]> {
  const named = words.indexOf('--project');
  const folder = named === -1 ? undefined : words[named + 1];
  const found = await complete(program, words, projectNames(folder === '' ? undefined : folder));
  if (found.kind === 'folders') return [FOLDERS_LINE];
  return found.candidates.map(({ value, about }) => `${harmless(value)}\t${harmless(about)}`);
}
