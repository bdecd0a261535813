/**
 * Reads a history of Temporal's own JSON form. The SDK has a reader for it, but npm installs several copies of protobufjs
 * (another of the SDK's dependencies wants an older one), and the reader does not know the types of a copy that is not its
 * own. Here reader and types come from one.
 */

import { createRequire } from 'node:module';
import type { temporal } from '@temporalio/proto';

type History = temporal.api.history.v1.IHistory;
interface Types {
  lookupType(name: string): object;
}
interface Reader {
  fromJson(type: object, json: unknown, options: { readonly ignoreUnknownFields: boolean }): History;
}

const ofSdk = createRequire(createRequire(import.meta.url).resolve('@temporalio/common'));
const ofTypes = createRequire(ofSdk.resolve('@temporalio/proto'));
const { patchProtobufRoot } = ofTypes('@temporalio/proto/lib/patch-protobuf-root') as {
  patchProtobufRoot(proto: unknown): Types;
};
const types = patchProtobufRoot(ofSdk('@temporalio/proto')).lookupType('temporal.api.history.v1.History');
const { fromJson } = ofTypes('protobufjs/ext/protojson') as Reader;

/** @throws Error where the text is not such a history. */
export function decodeHistory(text: string): History {
  return fromJson(types, JSON.parse(text), { ignoreUnknownFields: true });
}
