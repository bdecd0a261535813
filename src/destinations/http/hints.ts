/** What is valid in a mirror into an API, and yet will probably block its first run. */

import type { HttpOptions } from './options.ts';

export function httpHints(options: HttpOptions): readonly string[] {
  if (options.outcomes !== undefined || options.asynchronous !== undefined) return [];
  return [
    '`outcomes` does not say what the API’s replies mean: one that is not plainly a yes leaves a request unknown, and may block the run. Describe the reply there before the first run.',
  ];
}
