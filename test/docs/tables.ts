/** The two tables of README that are made from the code. */

import { EXIT, EXIT_MEANINGS } from '../../src/cli/exit-codes.ts';
import { ERROR_CODES } from '../../src/domain/errors.ts';

type Rows = readonly (readonly string[])[];

export function errorRows(): Rows {
  return Object.entries(ERROR_CODES).map(([code, { meaning, remedy }]) => [`\`${code}\``, meaning, remedy]);
}

export function exitRows(): Rows {
  const meanings: { readonly [name: string]: string } = EXIT_MEANINGS;
  return Object.entries(EXIT).map(([name, code]) => [String(code), meanings[name] ?? '']);
}

/** A table as the formatter leaves it: columns as wide as their widest cell. */
export function tableText(head: readonly string[], rows: Rows, alignRight: readonly number[] = []): string {
  const escaped = [head, ...rows].map((row) => row.map(inTable));
  const widths = head.map((_, column) => Math.max(3, ...escaped.map((row) => (row[column] ?? '').length)));
  const pad = (text: string, column: number) =>
    alignRight.includes(column) ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0);
  const rule = widths.map((width, column) =>
    alignRight.includes(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
  );
  const [first = [], ...rest] = escaped.map((row) => row.map(pad));
  return [first, rule, ...rest].map((row) => `| ${row.join(' | ')} |`).join('\n');
}

function inTable(cell: string): string {
  return cell.replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('|', '\\|');
}
