/** The files that `retl init` writes: a project that works as it stands, and says how to make it one's own. */

import { ENV_FORM, REFERENCE_FORMS } from '../config/secrets.ts';

/** Path relative to the project, and content. */
export interface SkeletonFile {
  readonly path: string;
  readonly content: string;
}

/** Where editors find the schemas, relative to the project. */
export const SCHEMA_FOLDER = '.retl/schema';

const env = (name: string) => ENV_FORM.replace('NAME', name);

const PROJECT = `# yaml-language-server: $schema=${SCHEMA_FOLDER}/retl.schema.json
#
# Where things are. Secrets never stand in this file: write ${REFERENCE_FORMS}.
# Variables are also read from .env in this folder.

# The journal: a PostgreSQL database in which every request and every receipt is recorded.
journal:
  url: ${env('RETL_JOURNAL_URL')} # what workers use: a role without DDL
  owner_url: ${env('RETL_JOURNAL_OWNER_URL')} # what \`retl migrate\` alone uses

# Temporal is found as every Temporal program finds it: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY,
# TEMPORAL_PROFILE and the profile file. What is set here goes before that.
# temporal:
#   profile: production
#   task_queue: retl-mirror

# Where workers' metrics go; nowhere, unless it says so.
# metrics: { prometheus: "127.0.0.1:9464" }

# What runs leave behind goes once a day, after \`retl schedules apply\`; how long some of it is kept:
# maintenance: { keep_receipts: 30d, keep_candidates: 7d }

# The systems that mirrors read from and write to.
connections:
  # \`retl dev\` makes this little database, with a table of customers and an empty audience.
  playground:
    type: postgres
    url: ${env('PLAYGROUND_URL')}

  # An HTTP API:
  # crm:
  #   type: http
  #   base_url: https://api.example.com
  #   auth:
  #     bearer: ${env('CRM_TOKEN')}
`;

const MIRROR = `# yaml-language-server: $schema=../${SCHEMA_FOLDER}/mirror.schema.json
#
# One mirror, named as this file. After every run the destination holds exactly what the query returns.

source:
  connection: playground
  query: select id, email, plan from customers where plan = 'vip'
  key: id # the column, or columns, that name a row

# What a row means to the destination.
members:
  - identity:
      email_sha256: { column: email, normalize: email, hash: sha256 }
    payload:
      plan: plan # field: column
    when: { column: email, is: not_null } # a row that fails this is left out on purpose

destination:
  connection: playground
  table: audience

  # Into an HTTP API instead:
  # connection: crm
  # upsert: { method: POST, path: /audiences/42/members }
  # remove: { method: DELETE, path: /audiences/42/members }

# The audience is new and empty; checked before the first run.
baseline: new-empty

# A run that would remove more than this is parked before it removes anything, and waits for \`retl approve\` or \`retl reject\`.
safety:
  max_removals: 20%
  empty_snapshot: hold
  # approval_deadline: 24h # how long it waits; without an answer nobody is removed

# Runs by itself, once \`retl schedules apply\` has told Temporal:
# schedule: { every: 1h }
# schedule: { cron: "0 6 * * 1-5", time_zone: Europe/Berlin }

# Words to choose mirrors by: \`retl run --tag nightly\`.
# tags: [nightly]

batch: { rows: 1000, bytes: 1MB, in_flight: 4 }
`;

const ENVIRONMENT = `# Copy to .env and fill in; .env is never committed. The real environment goes before it.
# While \`retl dev\` runs, it provides all of these by itself.

RETL_JOURNAL_URL=postgres://retl_worker:…@localhost:5432/retl
RETL_JOURNAL_OWNER_URL=postgres://retl_owner:…@localhost:5432/retl
# TEMPORAL_ADDRESS=localhost:7233
# TEMPORAL_NAMESPACE=default
PLAYGROUND_URL=postgres://…@localhost:5432/playground
# CRM_TOKEN=
`;

const GITIGNORE = `.env
.env.*
!.env.example
.retl/
`;

export const SKELETON: readonly SkeletonFile[] = [
  { path: 'retl.yaml', content: PROJECT },
  { path: 'mirrors/example.yaml', content: MIRROR },
  { path: '.env.example', content: ENVIRONMENT },
  { path: '.gitignore', content: GITIGNORE },
];
