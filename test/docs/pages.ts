/** The pages that are written for people, and what stands in them. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../architecture/sources.ts';

export function page(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** README, CHANGELOG and everything in docs, relative to the project. */
export function pages(): readonly string[] {
  const top = readdirSync(ROOT).filter((name) => name.endsWith('.md'));
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  return [...top, ...docs.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)];
}

/** The part of a page under a heading, up to the next one of any level. */
export function section(text: string, heading: string): string {
  const parts = text.split(/^#+ /m);
  const found = parts.find((part) => part.startsWith(`${heading}\n`));
  if (found === undefined) throw new Error(`no heading "${heading}"`);
  return found;
}

/** The cells of every table row, without heads and rules; escapes undone. */
export function rows(text: string): readonly (readonly string[])[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map(plain),
    )
    .filter((cells, index, all) => !isRule(cells) && !isRule(all[index + 1] ?? []));
}

function isRule(cells: readonly string[]): boolean {
  return cells.length > 0 && cells.every((cell) => /^:?-+:?$/.test(cell));
}

function plain(cell: string): string {
  return cell.trim().replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('\\|', '|');
}

/** Names in the first cell of each row: `` `a`, `b` `` gives both. */
export function namesIn(text: string): readonly string[] {
  return rows(text).flatMap(([first = '']) =>
    [...first.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? ''),
  );
}

/** The fenced blocks of one language. */
export function blocks(text: string, language: string): readonly string[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(
    (match) => match[1] ?? '',
  );
}
