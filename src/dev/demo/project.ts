/** The demo's project folder, written as a user would write it. */

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const MIRROR = 'vip-customers';
export const AUDIENCE = '42';

const PROJECT_FILE = (audienceUrl: string): string => `# Written by the demo.
journal:
  url: \${env:RETL_JOURNAL_URL}
connections:
  shop:
    type: postgres
    url: \${env:SHOP_URL}
  crm:
    type: http
    base_url: ${audienceUrl}
    auth: none
`;

const MIRROR_FILE = `# Every VIP customer with an e-mail address is in audience ${AUDIENCE}, and nobody else.
source:
  connection: shop
  query: select id, email, full_name, plan, points, updated_at from customers where plan = 'vip'
  key: [id]
members:
  - identity: { email_sha256: { column: email, normalize: email, hash: sha256 } }
    payload: { full_name: full_name, plan: plan, points: points, seen_at: updated_at }
    when: { column: email, is: not_null }
destination:
  connection: crm
  upsert: { method: POST, path: /audiences/${AUDIENCE}/members }
  remove: { method: DELETE, path: /audiences/${AUDIENCE}/members }
  verify_empty: { path: /audiences/${AUDIENCE}, count: /members }
  outcomes:
    per_row:
      list: /results
      id: id
      match: email_sha256
      ok: { field: status, values: [ok], rejected: [invalid] }
      reason: reason
  idempotency: { header: Idempotency-Key }
  idempotent: true
baseline: new-empty
batch: { rows: 50, bytes: 1MB, in_flight: 2 }
safety: { max_removals: 20%, empty_snapshot: hold }
`;

/** Variables that `retl.yaml` and Temporal's clients read. */
export interface ProjectEnvironment {
  readonly RETL_JOURNAL_URL: string;
  readonly SHOP_URL: string;
  readonly TEMPORAL_ADDRESS: string;
}

/** Writes `retl.yaml`, the mirror's file and `.env`, so that `retl --project <folder>` works while the demo is up. */
export async function writeProject(
  folder: string,
  audienceUrl: string,
  environment: ProjectEnvironment,
): Promise<void> {
  await mkdir(join(folder, 'mirrors'), { recursive: true });
  await writeFile(join(folder, 'retl.yaml'), PROJECT_FILE(audienceUrl));
  await writeFile(join(folder, 'mirrors', `${MIRROR}.yaml`), MIRROR_FILE);
  const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(folder, '.env'), lines.join(''), { mode: 0o600 });
}
