/** What a worker is made from: the systems it knows, and the configuration that it reads. */

import type { Configuration } from './activities/deps.ts';
import { expectValid, loadMirror } from './config/load.ts';
import { loadProjection } from './config/projection-module.ts';
import { resolveReferences, secretsOf } from './config/secrets.ts';
import { parseSettings, settingsText } from './config/settings-text.ts';
import { httpDestination } from './destinations/http/index.ts';
import type { DestinationAdapter, Logger } from './destinations/port.ts';
import { postgresDestination } from './destinations/postgres/index.ts';
import { s3Destination } from './destinations/s3/index.ts';
import { salesforceDestination } from './destinations/salesforce/index.ts';
import { RetlError } from './domain/errors.ts';
import type { SourceAdapter } from './sources/port.ts';
import { postgresSource } from './sources/postgres/source.ts';

export const SOURCES: readonly SourceAdapter[] = [postgresSource];
export const DESTINATIONS: readonly DestinationAdapter[] = [
  httpDestination,
  postgresDestination,
  s3Destination,
  salesforceDestination,
];

export interface WorkerSetup {
  readonly projectDir: string;
  readonly destinations: readonly DestinationAdapter[];
  readonly logger: Logger;
  /** Milliseconds between two looks at the journal for metrics; 15,000 where it is left out. */
  readonly metricsEveryMs?: number;
  /** A workflow bundle made beforehand; without it the one that was built, or else it is made at start. */
  readonly workflowBundle?: string;
}

/** Reads configuration anew for every admission, so that a changed mirror needs no restart. */
export function configurationOf(setup: WorkerSetup): Configuration {
  const { projectDir } = setup;
  const types = { sources: SOURCES, destinations: setup.destinations };
  return {
    async mirror(name) {
      const [found] = expectValid(await loadMirror(projectDir, name, types)).mirrors;
      if (found === undefined) throw new RetlError('config.unknown-mirror', { mirror: name });
      return found;
    },
    text: settingsText,
    parse: parseSettings,
    resolve(options) {
      const { env, readFile } = secretsOf(projectDir);
      return resolveReferences(options, env, readFile);
    },
    projection: (mapping) => loadProjection(mapping, projectDir),
  };
}
