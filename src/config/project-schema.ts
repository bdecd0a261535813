/** What `retl.yaml` may hold. Descriptions say what is valid at their place. */

import { z } from 'zod';
import { artifactsInput } from './artifacts-schema.ts';
import { indexesInput } from './index-schema.ts';
import { maintenanceInput } from './maintenance-schema.ts';
import { metricsInput } from './metrics-schema.ts';
import { scheduleDefaultsInput } from './schedule-schema.ts';
import { REFERENCE_FORMS } from './secrets.ts';
import { sections } from './section-schemas.ts';

/** Name of a connection. */
export const CONNECTION_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;
/** Name of an environment: also the end of `.env.<name>`. */
export const ENVIRONMENT_NAME = /^[a-z][a-z0-9_-]{0,62}$/;
const ROLE_WORDS = 'name of a PostgreSQL role';

const reference = `as ${REFERENCE_FORMS}`;

export const connectionInput = z.looseObject({
  type: z.string().min(1).describe('the system’s type, for example postgres or http'),
});

const journalInput = z.strictObject({
  url: z.string().min(1).describe(`PostgreSQL URL of the journal for the runtime role, ${reference}`),
  owner_url: z
    .string()
    .min(1)
    .describe(`PostgreSQL URL of the journal for its owner, used by \`retl migrate\` alone, ${reference}`)
    .optional(),
  reader_url: z
    .string()
    .min(1)
    .describe(
      `PostgreSQL URL of the journal for people who look (status, runs, explain, rejections), ${reference}`,
    )
    .optional(),
  runtime_role: z
    .string()
    .min(1)
    .max(63)
    .describe(`${ROLE_WORDS}: the one in \`url\`, where the URL does not name it`)
    .optional(),
});

const temporalInput = z
  .strictObject({
    profile: z.string().min(1).describe('a profile of Temporal’s configuration file').optional(),
    address: z
      .string()
      .regex(/^[^\s/]+:\d{1,5}$|^\$\{/)
      .describe('host:port of Temporal, without http://')
      .optional(),
    namespace: z.string().min(1).describe('a Temporal namespace').optional(),
    task_queue: z
      .string()
      .min(1)
      .meta({ description: 'name of the task queue that workers poll', default: 'retl-mirror' })
      .optional(),
  })
  .describe('overrides of Temporal’s environment configuration: {profile, address, namespace, task_queue}');

const connectionName = z
  .string()
  .regex(CONNECTION_NAME)
  .describe('a name of letters, digits, `_` and `-`, not beginning with a digit');

/** What every mirror of the project has where its own file says nothing, key by key. */
export const defaultsInput = z
  .strictObject({
    ...sections,
    schedule: scheduleDefaultsInput
      .describe('how schedules run: {time_zone, jitter, overlap, catch_up, pause_on_failure}')
      .optional(),
  })
  .describe(
    'what mirrors have where their own files say nothing: {batch, safety, on_rejection, refresh_after, resume_max_age, schedule, tags}',
  );

/** What an environment changes, key by key; it completes what stands above it and may be anything less. */
const environmentInput = z.strictObject({
  journal: journalInput
    .partial()
    .describe('where runs of this environment are recorded: no other may share it')
    .optional(),
  temporal: temporalInput.optional(),
  metrics: metricsInput.optional(),
  indexes: indexesInput.optional(),
  artifacts: artifactsInput.optional(),
  maintenance: maintenanceInput.optional(),
  connections: z
    .record(
      connectionName,
      z
        .looseObject({ type: connectionInput.shape.type.optional() })
        .describe('the keys that differ here; all of them where the type differs'),
    )
    .describe('connections that differ here, or are only here, by name')
    .optional(),
  defaults: defaultsInput.optional(),
});

export const projectInput = z.strictObject({
  journal: journalInput.describe('where runs are recorded: {url, owner_url}'),
  temporal: temporalInput.optional(),
  metrics: metricsInput.optional(),
  indexes: indexesInput.optional(),
  artifacts: artifactsInput.optional(),
  maintenance: maintenanceInput.optional(),
  connections: z
    .record(connectionName, connectionInput.describe('{type} and the options of that type'))
    .describe('the systems that mirrors read from and write to, by name'),
  defaults: defaultsInput.optional(),
  environments: z
    .record(
      z
        .string()
        .regex(ENVIRONMENT_NAME)
        .describe('a name of lower-case letters, digits, `_` and `-`, beginning with a letter'),
      environmentInput.describe(
        '{journal, temporal, metrics, indexes, artifacts, maintenance, connections, defaults}, the keys that differ',
      ),
    )
    .describe('variants of this file, chosen with --env or RETL_ENV: what differs in each')
    .optional(),
});

export type ProjectInputFile = z.infer<typeof projectInput>;
export type DefaultsInput = z.infer<typeof defaultsInput>;
