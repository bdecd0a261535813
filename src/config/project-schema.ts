/** What `retl.yaml` may hold. Descriptions say what is valid at their place. */

import { z } from 'zod';
import { REFERENCE_FORMS } from './secrets.ts';

/** Name of a connection. */
export const CONNECTION_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;
const ROLE_WORDS = 'name of a PostgreSQL role';

const reference = `as ${REFERENCE_FORMS}`;

export const connectionInput = z.looseObject({
  type: z.string().min(1).describe('the system’s type, for example postgres or http'),
});

export const projectInput = z.strictObject({
  journal: z
    .strictObject({
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
    })
    .describe('where runs are recorded: {url, owner_url}'),
  temporal: z
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
    .describe('overrides of Temporal’s environment configuration: {profile, address, namespace, task_queue}')
    .optional(),
  connections: z
    .record(
      z
        .string()
        .regex(CONNECTION_NAME)
        .describe('a name of letters, digits, `_` and `-`, not beginning with a digit'),
      connectionInput.describe('{type} and the options of that type'),
    )
    .describe('the systems that mirrors read from and write to, by name'),
});

export type ProjectInputFile = z.infer<typeof projectInput>;
