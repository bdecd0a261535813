/**
 * Connects to Temporal as its environment configuration says (profile file, `TEMPORAL_*`, TLS, API key); what
 * `temporal` in retl.yaml names goes before it.
 */

import { Client, Connection } from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { RetlError } from '../domain/errors.ts';
import type { TemporalSettings } from '../domain/settings.ts';
import { temporalPlace } from '../domain/temporal-place.ts';

const CONNECT_WITHIN_MS = 5_000;

export interface TemporalClient {
  readonly client: Client;
  readonly address: string;
  /** Whether somebody has said so (retl.yaml, `TEMPORAL_ADDRESS`, a profile), or it is only where Temporal is by default. */
  readonly isNamed: boolean;
  readonly namespace: string;
  readonly taskQueue: string;
  close(): Promise<void>;
}

/**
 * @param settings without secret references left in it.
 * @param withinMs is waited for a server that is not there: the driver tries again until then.
 * @throws RetlError `temporal.connect`; never with the driver's own words.
 */
export async function connectClient(
  settings: TemporalSettings,
  withinMs = CONNECT_WITHIN_MS,
): Promise<TemporalClient> {
  const { options, ...place } = placeOf(settings);
  const { address, namespace } = place;
  try {
    const connection = await Connection.connect({ ...options, address, connectTimeout: withinMs });
    return {
      client: new Client({ connection, namespace }),
      ...place,
      taskQueue: settings.taskQueue,
      close: () => connection.close(),
    };
  } catch {
    throw new RetlError('temporal.connect', { address, namespace });
  }
}

/** Where Temporal is, and who has said so, without connecting. @throws RetlError `temporal.connect` */
export function placeOf(settings: TemporalSettings) {
  const { options, ...place } = temporalPlace(settings, loadClientConnectConfig);
  const { apiKey, tls, metadata } = options;
  return {
    ...place,
    options: { ...defined('apiKey', apiKey), ...defined('tls', tls), ...defined('metadata', metadata) },
  };
}

/** Absent rather than undefined, as the SDK's options want it. */
function defined<Name extends string, T>(name: Name, value: T | undefined): { [K in Name]?: T } {
  const options: { [K in Name]?: T } = {};
  if (value !== undefined) options[name] = value;
  return options;
}
