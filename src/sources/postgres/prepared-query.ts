/**
 * Checks and describes the user's query without reading a row, and leaves it ready to run as a portal.
 *
 * One round trip of the extended protocol, which by itself refuses several statements and takes comments and a closing
 * semicolon as they are, so that the query's text is never changed:
 *   Parse the query, Describe it (its parameters and columns), Parse it once more behind DECLARE … CURSOR FOR (only a
 *   statement that reads passes), Bind it to a portal (plans it, checks the rights of the user).
 */

import type { Connection, FieldDef, Submittable } from 'pg';
import { RetlError } from '../../domain/errors.ts';

const STATEMENT = 'retl_query';
export const PORTAL = 'retl_rows';
const READING_ONLY = 'DECLARE retl_reading_only NO SCROLL CURSOR FOR\n';

export class PreparedQuery implements Submittable {
  /** Columns of the query. Rejects with a RetlError for what this file refuses, else with the driver's error. */
  readonly fields: Promise<readonly FieldDef[]>;
  private resolve: (fields: readonly FieldDef[]) => void = () => undefined;
  private reject: (error: unknown) => void = () => undefined;
  private columns: readonly FieldDef[] = [];
  private parameters = 0;
  private parsed = 0;

  constructor(private readonly query: string) {
    this.fields = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.fields.catch(() => undefined); // whoever awaits it sees the rejection
  }

  submit(connection: Connection): void {
    connection.on('parameterDescription', this.onParameters);
    connection.on('parseComplete', this.onParsed);
    this.stopListening = () => {
      connection.off('parameterDescription', this.onParameters);
      connection.off('parseComplete', this.onParsed);
    };
    connection.parse({ name: STATEMENT, text: this.query, types: [] }, true);
    connection.describe({ type: 'S', name: STATEMENT }, true);
    connection.parse({ name: '', text: READING_ONLY + this.query, types: [] }, true);
    connection.bind({ portal: PORTAL, statement: STATEMENT }, true);
    connection.sync();
  }

  private stopListening: () => void = () => undefined;

  private readonly onParameters = (message: { parameterCount: number }): void => {
    this.parameters = message.parameterCount;
  };

  private readonly onParsed = (): void => {
    this.parsed += 1;
  };

  handleRowDescription(message: { fields: readonly FieldDef[] }): void {
    this.columns = message.fields;
  }

  handleError(error: unknown): void {
    this.stopListening();
    this.reject(this.refusal(error));
  }

  handleReadyForQuery(): void {
    this.stopListening();
    const refusal = this.refusedColumns();
    if (refusal === null) this.resolve(this.columns);
    else this.reject(refusal);
  }

  private refusal(error: unknown): unknown {
    if (this.parameters > 0)
      return new RetlError('source.query', { reason: 'parameters', parameters: this.parameters });
    // The query itself was understood; behind DECLARE CURSOR it was not.
    if (this.parsed === 1 && isRefusal(error))
      return new RetlError('source.query', { reason: 'not-a-select' });
    return error;
  }

  private refusedColumns(): RetlError | null {
    if (this.columns.length === 0) return new RetlError('source.query', { reason: 'no-columns' });
    const seen = new Set<string>();
    for (const { name } of this.columns) {
      if (seen.has(name)) return new RetlError('source.duplicate-column', { column: name });
      seen.add(name);
    }
    return null;
  }
}

/** 42601: not a statement that a cursor can hold; 0A000: one that holds a writing part. */
function isRefusal(error: unknown): boolean {
  const sqlstate: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return sqlstate === '42601' || sqlstate === '0A000';
}
