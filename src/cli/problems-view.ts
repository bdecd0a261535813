/** Lists what is wrong with the configuration, each at its place and with its remedy. */

import type { Problem } from '../config/problem.ts';
import type { Output } from './output.ts';

export function showProblems(output: Output, problems: readonly Problem[]): void {
  for (const problem of problems) {
    const place = [problem.file, problem.line, problem.column].filter((part) => part !== null).join(':');
    showProblem(output, { ...problem, place, mark: output.style('red', 'error') });
  }
  const files = new Set(problems.map((problem) => problem.file)).size;
  output.note(`${counted(problems.length, 'error')} in ${counted(files, 'file')}; nothing was started.`);
}

interface Shown {
  readonly mark: string;
  readonly place: string;
  readonly path: string;
  readonly message: string;
  readonly remedy: string;
}

export function showProblem(output: Output, { mark, place, path, message, remedy }: Shown): void {
  const where = [output.style('bold', place), path].filter((part) => part !== '').join(' ');
  output.note(`${mark} ${where}`);
  output.note(`  ${message}`);
  if (remedy !== '') output.note(`  ${output.style('dim', remedy)}`);
}

export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? noun : plural}`;
}
