/**
 * Destination `salesforce`: records of one object, through Bulk API 2.0 as its public documentation describes it (versions
 * 41.0 and later; written against the pages of 60.0 to 67.0). It has not met the live service.
 *
 * A member is a record that an external ID field tells apart. A batch is one ingest job: created, its ID saved, the data
 * uploaded, the word given, then asked about until it has ended; its tables of successful, failed and unprocessed records
 * say what became of each row (rule 5). A job cannot be given a mark of ours, and the list of jobs cannot be searched for one: what
 * makes a lost answer harmless is the order of the steps (ingest.ts). A delete job takes record IDs only, which are looked up
 * by the external ID just before (records.ts).
 */

import { canonicalJson } from '../../domain/canonical-json.ts';
import { LINES_FRAME } from '../../domain/request.ts';
import type { DestinationAdapter } from '../port.ts';
import {
  instanceOrigin,
  longestRequestMs,
  type SalesforceConnection,
  salesforceConnectionSchema,
} from './connection.ts';
import { checkFields, type SalesforceOptions, salesforceOptionsSchema } from './options.ts';
import { payloadSchema } from './payload.ts';
import { SalesforceWriter } from './writer.ts';

export type { SalesforceConnection, SalesforceOptions };

/** A job is processed in batches of so many records: a request is one of them. */
const MAX_ROWS = 10_000;
/** Documented: at most 100 MB of data in a job, which has 150 MB once encoded. A body of JSON is no shorter than its CSV. */
const MAX_BYTES = 64 * 1024 * 1024;
const MAX_IN_FLIGHT = 8;

export const salesforceDestination: DestinationAdapter<SalesforceConnection, SalesforceOptions> = {
  type: 'salesforce',
  connectionSchema: salesforceConnectionSchema,
  optionsSchema: salesforceOptionsSchema,
  capabilities: (connection, options) => ({
    strategies: ['snapshot-diff'],
    explicitRemoval: true,
    batchDelivery: 'asynchronous',
    recovery: 'lookup',
    visible: 'on_accept',
    maxRows: MAX_ROWS,
    maxBytes: MAX_BYTES,
    maxInFlight: MAX_IN_FLIGHT,
    maxStaged: options.max_jobs,
    longestRequestMs: longestRequestMs(connection),
    // Records are CSV: 1 and "1" are one.
    identityFolding: [...options.identity_folding, 'text'],
  }),
  /** API names know no case. */
  targetKey: (connection, { object, external_id }) =>
    JSON.stringify([
      'salesforce',
      instanceOrigin(connection),
      object.toLowerCase(),
      external_id.toLowerCase(),
    ]),
  writeForm({ columns }) {
    const renamed = Object.entries(columns).filter(([field, column]) => field !== column);
    return renamed.length === 0 ? '' : canonicalJson({ columns: Object.fromEntries(renamed) });
  },
  /** What bounds a batch and is hashed; the job's CSV is made from its operations. */
  frame: () => LINES_FRAME,
  checkFields,
  payloadSchemas: () => ({ upsert: payloadSchema, remove: payloadSchema }),
  open: async (connection, options, context) => new SalesforceWriter(connection, options, context),
};
