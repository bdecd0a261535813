/** The port of every source system: one query, read whole, in one consistent snapshot. */

import type { z } from 'zod';
import type { Column, RawRow } from '../domain/source-row.ts';

export interface SourceAdapter<Config = unknown> {
  readonly type: string;
  /** Validates `connections.<name>` of `retl.yaml` with its secrets resolved. */
  readonly connectionSchema: z.ZodType<Config>;
  /**
   * Opens one read-only, repeatable snapshot of the query.
   * @throws RetlError with a `source.*` code; never with a value, a secret or the driver's own message.
   */
  open(config: Config, query: string, signal: AbortSignal): Promise<SourceSnapshot>;
  /** Connects, prepares the query without reading rows, and describes its columns. */
  describe(config: Config, query: string, signal: AbortSignal): Promise<readonly Column[]>;
}

export interface SourceSnapshot {
  /** In query order; names are unique. */
  readonly columns: readonly Column[];
  /**
   * Pages of rows in the source's order, read ahead by one page at most (back-pressure). A snapshot that ends without
   * throwing has been read whole: a lost connection always throws.
   */
  pages(): AsyncIterable<readonly RawRow[]>;
  /** Ends the transaction and frees the connection; safe to call at any time and more than once. */
  close(): Promise<void>;
}
