/**
 * PostgreSQL as a source (design.md section 4, extract): the whole query, in its own order, in one read-only
 * repeatable-read transaction on one connection. A connection that is lost is never replaced within a snapshot: another
 * one, perhaps to another host, would see another state (rule 8).
 */

import { RetlError } from '../../domain/errors.ts';
import type { Column, RawRow } from '../../domain/source-row.ts';
import type { SourceAdapter, SourceSnapshot } from '../port.ts';
import { connectionSchema, type PostgresSourceConfig } from './config.ts';
import { RowStream } from './row-stream.ts';
import { Session } from './session.ts';

export const postgresSource: SourceAdapter<PostgresSourceConfig> = {
  type: 'postgres',
  connectionSchema,

  async open(config, query, signal) {
    const { session, columns } = await prepared(config, query, signal);
    return new PostgresSnapshot(session, columns, signal);
  },

  async describe(config, query, signal) {
    const { session, columns } = await prepared(config, query, signal);
    await session.end();
    return columns;
  },
};

async function prepared(
  config: PostgresSourceConfig,
  query: string,
  signal: AbortSignal,
): Promise<{ session: Session; columns: readonly Column[] }> {
  // The protocol ends texts with U+0000: what stands behind it would be cut off in silence.
  if (query.includes('\0')) throw new RetlError('source.query', { reason: 'nul-character' });
  const session = await Session.open(config, query, signal);
  return { session, columns: await session.prepare() };
}

class PostgresSnapshot implements SourceSnapshot {
  private stream: RowStream | null = null;
  private running = false;
  private closed = false;

  constructor(
    private readonly session: Session,
    readonly columns: readonly Column[],
    private readonly signal: AbortSignal,
  ) {}

  /** To be read once. Leaving the loop early closes the snapshot. */
  async *pages(): AsyncGenerator<readonly RawRow[], void, void> {
    if (this.stream !== null || this.closed)
      throw new Error('a snapshot is read once, and before it is closed');
    const stream = this.start();
    try {
      for (;;) {
        const page = await this.next(stream);
        if (page === null) return;
        yield page;
      }
    } finally {
      await this.close();
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    this.stream?.fail(new Error('the snapshot was closed'));
    await (this.running ? this.session.abandon() : this.session.end());
  }

  /** The transaction ends as soon as the last row has arrived, however long the reader takes over it. */
  private start(): RowStream {
    const stream = new RowStream(() => {
      this.running = false;
      void this.session.end();
    });
    this.stream = stream;
    this.running = true;
    return this.session.run(stream);
  }

  private async next(stream: RowStream): Promise<readonly RawRow[] | null> {
    try {
      const page = await stream.next();
      this.signal.throwIfAborted();
      return page;
    } catch (error) {
      throw this.session.failure(error);
    }
  }
}
