/** `--limit`: how many of a list. */

import { InvalidArgumentError } from 'commander';

const MOST = 1000;

/** Parses a whole number from 1 to 1,000. */
export function limitArgument(text: string): number {
  const limit = Number(text);
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MOST}.`);
  return limit;
}

export function limitOf(options: { readonly [name: string]: unknown }): number {
  return typeof options.limit === 'number' ? options.limit : 20;
}
