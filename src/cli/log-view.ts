/** The log in words: what a verification finds, and how far something has come. */

import type { BrokenRule } from '../journal/verify-log.ts';
import type { Output } from './output.ts';
import { whole } from './progress-view.ts';

/** What is wrong at a position. */
export const BROKEN: { readonly [R in BrokenRule]: string } = {
  position: 'the entry is missing',
  'previous-hash':
    'the entry does not follow the one before it, or a log snapshot completed in between was changed',
  'entry-hash': 'the entry was changed after it was written',
  'left-out': 'the operations that were rejected are not those that the entry leaves out',
  effects: 'operations of the entry are missing, or a payload is not the one that was accepted',
  'batch-id': 'the operations of the entry are not those that its batch was made of',
  identity:
    'the identity of an operation is missing, or is not the one whose hash the operation was accepted with',
  removal: 'the bytes that an operation removes its member with, or will, are missing or others',
  head: 'the log goes on, or ends, otherwise than its head says',
  earliest: 'the log does not begin where its newest snapshot ends',
  'snapshot-boundary': 'the log snapshot with this boundary was taken of another log',
  'snapshot-digest':
    'the rows of the log snapshot with this boundary are not those that it was completed with',
  'snapshot-payload': 'a member of the log snapshot that was accepted here has no payload, or another one',
  'snapshot-identity':
    'a member of the log snapshot that was accepted here has no identity, or one that its hash is not of',
  'snapshot-removal':
    'a member of the log snapshot that was accepted here would be removed with other bytes than were accepted',
};

/** Plain lines come at least this often, so that a log shows that it lives. */
const PLAIN_EVERY_MS = 15_000;

/** One line that is redrawn, or plain lines now and then where nobody watches. */
export class LongWork {
  #last = Date.now();

  constructor(private readonly output: Output) {}

  /** e.g. `at('verifying position', 7n, 12n)`. */
  at(what: string, done: bigint, of: bigint): void {
    const text = `${what} ${whole(Number(done))} of ${whole(Number(of))}`;
    if (this.output.isInteractive) this.output.redraw([text]);
    else if (Date.now() - this.#last >= PLAIN_EVERY_MS) {
      this.#last = Date.now();
      this.output.note(text);
    }
  }

  end(): void {
    this.output.redraw([]);
  }
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** e.g. `12.3 MiB`. */
export function sizeWords(bytes: number): string {
  const power = Math.min(UNITS.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${UNITS[power]}`;
}
