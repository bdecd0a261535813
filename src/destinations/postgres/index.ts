/**
 * Destination `postgres`: one table. A member is a row; its identity fields are the columns of a unique index, its
 * other fields plain columns. Other rows and other columns of the table are never touched.
 *
 * One request is one transaction: rows go in by INSERT … ON CONFLICT DO UPDATE, out by DELETE, both by identity, so that the
 * same request twice equals once. A lost answer to COMMIT is unknown and is resolved by sending the same again, which settles it also where
 * the table refuses a row: the fence has waited for the first copy, and a row that stands as asked is accepted. Rows
 * that the table refuses are found one by one and reported; what a trigger silently discards is rejected as
 * `silent-noop`, for the number of rows written must equal the number sent. A removal of a row that is not there is
 * accepted. JSON null and SQL NULL are one; a field that is absent leaves its column alone.
 *
 * A second unique constraint is the table's own affair: a new member that takes over a value from one that is still to
 * be removed is rejected, for removals come after all additions.
 *
 * With `swap` the table is replaced natively: requests load a side table, and the finish swaps (swap-writer.ts).
 *
 * Only one mirror may write to a table, and of that one only its newest attempt: fence.ts (design.md, rule 9).
 */

import { canonicalJson } from '../../domain/canonical-json.ts';
import { ARRAY_FRAME } from '../../domain/request.ts';
import type { DestinationAdapter } from '../port.ts';
import { connectionSchema, longestRequestMs, type PostgresConnection } from './connection.ts';
import {
  checkFields,
  columnOf,
  optionsSchema,
  type PostgresOptions,
  payloadSchemas,
  targetTable,
} from './options.ts';
import { longestSwapMs, SwapWriter } from './swap-writer.ts';
import { MAX_IN_FLIGHT, PostgresWriter } from './writer.ts';

export type { PostgresConnection, PostgresOptions };

export const postgresDestination: DestinationAdapter<PostgresConnection, PostgresOptions> = {
  type: 'postgres',
  connectionSchema,
  optionsSchema,
  capabilities: (connection, options) => ({
    strategies: [options.swap === undefined ? 'snapshot-diff' : 'native-replace'],
    explicitRemoval: options.swap === undefined,
    batchDelivery: 'accepted',
    recovery: 'idempotent',
    lastCopyDecides: true,
    visible: options.swap === undefined ? 'on_accept' : 'at_finish',
    maxRows: 10_000,
    maxBytes: 16_000_000,
    maxInFlight: MAX_IN_FLIGHT,
    longestRequestMs: options.swap === undefined ? longestRequestMs(connection) : longestSwapMs(options),
    // Columns read every identity as a text (columns.ts): 1 and "1" are one row.
    identityFolding: [...options.identity_folding, 'text'],
    lists: true,
  }),
  targetKey({ host, port, database }, options) {
    const { schema, name } = targetTable(options);
    return JSON.stringify(['postgres', host, port, database, schema, name]);
  },
  /** Fields that keep their names are left out: writing a name twice changes nothing. */
  writeForm({ columns }) {
    const renamed = Object.entries(columns).filter(([field, column]) => field !== column);
    return renamed.length === 0 ? '' : canonicalJson({ columns: Object.fromEntries(renamed) });
  },
  /** A swap removes nobody: what is no member goes with the table's contents. */
  identityForm(options, identity) {
    const fields = options.identity ?? identity;
    if (fields === null || options.swap !== undefined) return '';
    return canonicalJson(Object.fromEntries(fields.map((field) => [field, columnOf(options, field)])));
  },
  frame: () => ARRAY_FRAME,
  checkFields,
  payloadSchemas,
  open: async (connection, options, context) =>
    options.swap === undefined
      ? new PostgresWriter(connection, options, context)
      : new SwapWriter(connection, options, context),
};
