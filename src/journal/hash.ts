/** The one hash of this project, over the UTF-8 bytes of a text. */

import { hash } from 'node:crypto';

/** 64 hex digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex');
}

/** The same as 32 bytes in latin-1 text: one call, no Buffer. */
export function sha256Latin1(text: string): string {
  return hash('sha256', text, 'binary');
}
