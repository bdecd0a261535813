/** What is valid in a mirror into an API, and yet is probably not what its author wants. */

import type { HttpOptions } from './options.ts';
import { partings } from './places.ts';

export function httpHints(options: HttpOptions): readonly string[] {
  return [...outcomeHints(options), ...placeHints(options)];
}

function outcomeHints({ outcomes, asynchronous }: HttpOptions): readonly string[] {
  if (outcomes !== undefined || asynchronous !== undefined) return [];
  return [
    '`outcomes` does not say what the API’s replies mean: one that is not plainly a yes leaves a request unknown, and may block the run. Describe the reply there before the first run.',
  ];
}

/** Of a removal and of the look at an empty target; a job or a finish may well stand under another name. */
function placeHints(options: HttpOptions): readonly string[] {
  if (options.separate_places) return [];
  return [...partings(options)]
    .filter(({ at: [section], isSure }) => !isSure && (section === 'remove' || section === 'verify_empty'))
    .map(
      ({ at, what }) =>
        `\`${at.join('.')}\` parts from the address of \`upsert\`: ${what}. See that both are of one audience; then \`separate_places: true\` says so.`,
    );
}
