/** The project's own adapters, as the worker gives them to the configuration. */

import type { SystemTypes } from '../../src/config/system-types.ts';
import { httpDestination } from '../../src/destinations/http/index.ts';
import { postgresDestination } from '../../src/destinations/postgres/index.ts';
import { s3Destination } from '../../src/destinations/s3/index.ts';
import { salesforceDestination } from '../../src/destinations/salesforce/index.ts';
import { postgresSource } from '../../src/sources/postgres/source.ts';

export const SYSTEMS: SystemTypes = {
  sources: [postgresSource],
  destinations: [httpDestination, postgresDestination, s3Destination, salesforceDestination],
};
