/**
 * Runs the portal once, to its end, and hands its rows out in pages. Back-pressure is TCP's own: while a full page waits,
 * the socket is not read, and the server waits in its write. Against fetching page by page this saves the round trips,
 * lets the server use its parallel plans (it does not for a portal that is read in parts), and keeps the transaction
 * from ever being idle, however slow the reader is.
 *
 * Memory is bounded by two pages and what one socket read holds.
 */

import type { Connection, Submittable } from 'pg';
import type { RawRow } from '../../domain/source-row.ts';
import { PORTAL } from './prepared-query.ts';

/** A page is full at this many rows, or at this many bytes of row messages, whichever comes first. */
export const PAGE_ROWS = 1000;
const PAGE_BYTES = 4 * 1024 * 1024;

type Page = readonly RawRow[];

type State =
  | { readonly kind: 'running' }
  /** The server said so, and its count is ours. */
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly error: unknown };

export class RowStream implements Submittable {
  private state: State = { kind: 'running' };
  private filling: RawRow[] = [];
  private fillingBytes = 0;
  private readonly full: Page[] = [];
  private received = 0;
  /** Rows that the server says it has sent; `null` until it says so. */
  private sent: number | null = null;
  private connection: Connection | null = null;
  private wake: () => void = () => undefined;

  /** @param onComplete called once, when everything has arrived: the transaction is needed no more. */
  constructor(private readonly onComplete: () => void) {}

  submit(connection: Connection): void {
    this.connection = connection;
    connection.execute({ portal: PORTAL }, true);
    connection.sync();
  }

  /** The next page; `null` when the query has been read whole. @throws the driver's error, or a lost connection's. */
  async next(): Promise<Page | null> {
    for (;;) {
      if (this.state.kind === 'failed') throw this.state.error;
      const page = this.full.shift();
      if (this.full.length === 0) this.connection?.stream.resume(); // reads ahead while the caller works
      if (page !== undefined) return page;
      if (this.state.kind === 'complete') return null;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  /** Ends the stream from this side; what has not been handed out is dropped. */
  fail(error: unknown): void {
    if (this.state.kind !== 'running') return;
    this.state = { kind: 'failed', error };
    this.full.length = 0;
    this.filling = [];
    this.wake();
  }

  handleDataRow(message: { fields: RawRow; length: number }): void {
    if (this.state.kind !== 'running') return;
    this.received += 1;
    this.filling.push(message.fields);
    this.fillingBytes += message.length;
    if (this.filling.length >= PAGE_ROWS || this.fillingBytes >= PAGE_BYTES) this.turnPage();
  }

  handleCommandComplete(message: { text: string }): void {
    const count = /^SELECT (\d+)$/.exec(message.text)?.[1];
    this.sent = count === undefined ? null : Number(count);
  }

  handleReadyForQuery(): void {
    if (this.state.kind !== 'running') return;
    if (this.sent !== this.received) {
      this.fail(new Error('the server ended the query without having sent it whole'));
      return;
    }
    if (this.filling.length > 0) this.full.push(this.filling);
    this.state = { kind: 'complete' };
    this.connection?.stream.resume(); // for the good-bye
    this.onComplete();
    this.wake();
  }

  handleError(error: unknown): void {
    this.fail(error);
  }

  /** The socket is read again when the reader has taken what is full. */
  private turnPage(): void {
    this.full.push(this.filling);
    this.filling = [];
    this.fillingBytes = 0;
    this.connection?.stream.pause();
    this.wake();
  }
}
