/** A `salesforce` writer on a fake org, with members and requests to send, and the progress that a crash would leave. */

import { conformanceContext, conformanceRequest } from '../../src/destinations/conformance-session.ts';
import type {
  Action,
  BatchOutcome,
  BatchRequest,
  PollOutcome,
  Writer,
  WriterContext,
} from '../../src/destinations/port.ts';
import { salesforceDestination } from '../../src/destinations/salesforce/index.ts';
import type { BatchId } from '../../src/domain/ids.ts';
import type { JsonObject, Member } from '../../src/domain/member.ts';
import { KEY } from './fake-salesforce-org.ts';

export const CLIENT = {
  clientId: 'retl-client',
  clientSecret: 'retl-client-secret',
  refreshToken: 'refresh-me-now',
};

export function salesforceSettings(url: string, options: object = {}, connection: object = {}) {
  return {
    connection: salesforceDestination.connectionSchema.parse({
      instance_url: url,
      auth: { client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret },
      timeout_ms: 500,
      ...connection,
    }),
    options: salesforceDestination.optionsSchema.parse({ object: 'Member__c', external_id: KEY, ...options }),
  };
}

export interface OpenSalesforce {
  readonly writer: Writer;
  /** What has been saved between steps, by batch. */
  readonly progress: Map<BatchId, string>;
  readonly control: AbortController;
  request(action: Action, members: readonly Member[]): BatchRequest;
}

export async function openSalesforce(
  url: string,
  options: object = {},
  context: Partial<WriterContext> = {},
): Promise<OpenSalesforce> {
  const settings = salesforceSettings(url, options);
  const progress = new Map<BatchId, string>();
  const control = new AbortController();
  const writer = await salesforceDestination.open(settings.connection, settings.options, {
    ...conformanceContext(control.signal, progress),
    ...context,
  });
  let serial = Date.now() % 1_000_000;
  return {
    writer,
    progress,
    control,
    request: (action, members) => {
      serial += 1;
      return conformanceRequest(
        salesforceDestination.frame(action, settings.options),
        action,
        members,
        serial,
      );
    },
  };
}

export function record(key: string, payload: JsonObject = { Plan__c: 'vip' }): Member {
  return { identity: { [KEY]: key }, upsert: { [KEY]: key, ...payload }, remove: { [KEY]: key } };
}

export function records(count: number): readonly Member[] {
  return Array.from({ length: count }, (_, index) => record(`key-${index + 1}`));
}

/** What another attempt finds out, with nothing but what was saved. */
export async function reconcile(
  url: string,
  { progress }: OpenSalesforce,
  sent: BatchRequest,
): Promise<BatchOutcome> {
  const later = await openSalesforce(url);
  return later.writer.reconcileBatch(sent, null, progress.get(sent.batchId) ?? null);
}

export async function poll(
  { progress, writer }: OpenSalesforce,
  sent: BatchRequest,
  from: BatchOutcome,
): Promise<PollOutcome> {
  if (from.kind !== 'staged') throw new Error(`staged, and not ${from.kind}`);
  return writer.poll(sent, from.jobIds, from.receipt, progress.get(sent.batchId) ?? null);
}
