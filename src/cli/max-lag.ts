/** `--max-lag`: how far behind the log an index may be and still answer. */

import { InvalidArgumentError, Option } from 'commander';

const DEFAULT = 100;
const MOST = 1_000_000_000;

export function maxLagOption(): Option {
  return new Option(
    '--max-lag <positions>',
    'how far behind the log an index may be, else the journal is asked',
  )
    .argParser(maxLagArgument)
    .default(DEFAULT);
}

function maxLagArgument(text: string): number {
  const positions = Number(text);
  if (!/^\d+$/.test(text) || positions > MOST)
    throw new InvalidArgumentError(`It must be a whole number from 0 to ${MOST}.`);
  return positions;
}

export function maxLagOf(options: { readonly [name: string]: unknown }): number {
  return typeof options.maxLag === 'number' ? options.maxLag : DEFAULT;
}
