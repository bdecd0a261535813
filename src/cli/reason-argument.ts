/** `--because`: why a person decides something. It is kept in the journal and never goes through Temporal. */

import { InvalidArgumentError } from 'commander';
import { whole } from './progress-view.ts';

const LONGEST_REASON = 2_000;

/** Parses the text; a blank one is no reason. */
export function reasonArgument(text: string): string {
  const reason = text.trim();
  if (reason === '') throw new InvalidArgumentError('The reason is empty.');
  if (reason.length > LONGEST_REASON)
    throw new InvalidArgumentError(`The reason is longer than ${whole(LONGEST_REASON)} characters.`);
  return reason;
}

/** The reason that was given, or `null`. */
export function reasonOf({ because }: { readonly [name: string]: unknown }): string | null {
  return typeof because === 'string' ? because : null;
}
