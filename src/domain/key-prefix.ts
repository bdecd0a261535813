/** What the keys of artifacts begin with in an object store. */

import { utf8Length } from './utf8.ts';

const MAX_BYTES = 700;

/** Empty, or a path of names that ends with a slash. */
export function isKeyPrefix(prefix: string): boolean {
  const parts = prefix.split('/').slice(0, -1);
  const areNames = parts.every((part) => !['', '.', '..'].includes(part) && !/\p{Cc}/u.test(part));
  return (prefix === '' || prefix.endsWith('/')) && areNames && utf8Length(prefix) <= MAX_BYTES;
}
