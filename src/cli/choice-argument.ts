/** Words of an option that are some of a known list, with commas between them; a mistyped one is told what was meant. */

import { InvalidArgumentError } from 'commander';
import { nearest } from '../config/nearest.ts';

/** @returns each once, in the order of `known`. @throws InvalidArgumentError */
export function choicesIn<T extends string>(text: string, known: readonly T[]): readonly T[] {
  const words = text.split(',').map((word) => word.trim());
  const strange = words.find((word) => !known.some((choice) => choice === word));
  if (strange === undefined) return known.filter((choice) => words.includes(choice));
  const meant = nearest(strange, known);
  const list = `It must be some of ${known.join(', ')}, with commas.`;
  throw new InvalidArgumentError(meant === null ? list : `Did you mean ${meant}? ${list}`);
}
