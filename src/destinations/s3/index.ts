/**
 * Destination `s3`: a set of objects in an object store, replaced as a whole. Each request is one immutable object of NDJSON,
 * a member a line; the finish swaps `manifest.json`, which names the parts of the set. A reader that follows it sees
 * the former set or the new one, and never a half.
 *
 *   <prefix>/manifest.json                    the newest finished set, and who may write the next one (fence.ts)
 *   <prefix>/parts/<owner>-<run>/<batch>.ndjson[.gz]
 *   <prefix>/probe/…                          gone again before a run begins (preflight.ts)
 *
 * Nothing but a conditional write ever changes the manifest, so that a late writer of an older attempt is refused (design.md,
 * rule 9). Superseded parts go after the promotion of a later set (tidy.ts).
 */

import { LINES_FRAME } from '../../domain/request.ts';
import type { DestinationAdapter } from '../port.ts';
import { Bucket } from './bucket.ts';
import { connectionSchema, longestCallMs, type S3Connection, storeName } from './connection.ts';
import { folderOf, optionsSchema, type S3Options } from './options.ts';
import { S3Writer } from './writer.ts';

export type { S3Connection, S3Options };

export const s3Destination: DestinationAdapter<S3Connection, S3Options> = {
  type: 's3',
  connectionSchema,
  optionsSchema,
  capabilities: (connection) => ({
    strategies: ['native-replace'],
    explicitRemoval: false,
    batchDelivery: 'accepted',
    recovery: 'idempotent',
    visible: 'at_finish',
    maxRows: 50_000,
    maxBytes: 64 * 1024 * 1024,
    maxInFlight: 8,
    longestRequestMs: longestCallMs(connection),
    identityFolding: [],
  }),
  targetKey: (connection, options) =>
    JSON.stringify(['s3', storeName(connection), options.bucket, folderOf(options)]),
  frame: () => LINES_FRAME,
  checkFields: () => [],
  open: async (connection, options, context) =>
    new S3Writer(
      await Bucket.open(connection, options, context.signal),
      options,
      context,
      longestCallMs(connection),
    ),
};
