/** `--identities [number]`: how many members of each kind are shown by their values. */

import { InvalidArgumentError } from 'commander';

export const SHOWN = 20;
const MOST_SHOWN = 100_000;

export function shownArgument(text: string): number {
  const number = Number(text);
  if (!/^[1-9]\d*$/.test(text) || number > MOST_SHOWN)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MOST_SHOWN}.`);
  return number;
}

/** Of the parsed option; `null`: none are shown. */
export function shownOf(option: unknown): number | null {
  if (option === true) return SHOWN;
  return typeof option === 'number' ? option : null;
}
