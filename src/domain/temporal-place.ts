/** Where Temporal is: what retl.yaml names goes before Temporal's own environment configuration, and that before the default. */

import { RetlError } from './errors.ts';
import type { TemporalSettings } from './settings.ts';

const DEFAULT_ADDRESS = 'localhost:7233';
const DEFAULT_NAMESPACE = 'default';

/** What Temporal's environment configuration says (profile file, `TEMPORAL_*`); the SDK's own reader is passed in. */
interface EnvironmentConfig<Options> {
  readonly connectionOptions: Options;
  readonly namespace?: string | undefined;
}

interface TemporalPlace<Options> {
  /** How to connect, but for the address. */
  readonly options: Options;
  readonly address: string;
  /** Whether somebody has said so, or it is only where Temporal is by default. */
  readonly isNamed: boolean;
  readonly namespace: string;
}

/**
 * @param settings without secret references left in it
 * @throws RetlError `temporal.connect` where the environment configuration cannot be read; never with its reader's words
 */
export function temporalPlace<Options extends { readonly address?: string | undefined }>(
  settings: TemporalSettings,
  load: (of: { profile?: string }) => EnvironmentConfig<Options>,
): TemporalPlace<Options> {
  const { connectionOptions, namespace } = environment(settings, load);
  const named = settings.address ?? connectionOptions.address;
  return {
    options: connectionOptions,
    address: named ?? DEFAULT_ADDRESS,
    isNamed: named !== undefined,
    namespace: settings.namespace ?? namespace ?? DEFAULT_NAMESPACE,
  };
}

function environment<Config>(
  { profile }: TemporalSettings,
  load: (of: { profile?: string }) => Config,
): Config {
  try {
    return load(profile === null ? {} : { profile });
  } catch {
    const details = { rule: 'environment-configuration-unreadable', profile: profile ?? 'default' };
    throw new RetlError('temporal.connect', details);
  }
}
