/** Reads a throw-away project and gives its problems as lines. */

import { loadProject } from '../../src/config/load.ts';
import { problemText } from '../../src/config/problem.ts';
import type { SecretAccess } from '../../src/config/secrets.ts';
import type { SystemTypes } from '../../src/config/system-types.ts';
import type { ProjectSettings } from '../../src/domain/settings.ts';
import { createTestProject } from '../support/project.ts';
import { SYSTEMS } from './systems.ts';

export type Files = { readonly [path: string]: string | object };

export const SECRETS = {
  RETL_JOURNAL_URL: 'postgres://worker:canary-journal@localhost/retl',
  SHOP_URL: 'postgres://shop:canary-shop@localhost/shop',
  CRM_TOKEN: 'canary-token',
};

export const PROJECT = `journal:
  url: \${env:RETL_JOURNAL_URL}
connections:
  shop:
    type: postgres
    url: \${env:SHOP_URL}
  crm:
    type: http
    base_url: https://api.example.com
    auth:
      bearer: \${env:CRM_TOKEN}
`;

export const MIRROR = `source:
  connection: shop
  query: select id, email, plan, updated_at from customers where plan = 'vip'
  key: [id]
members:
  - identity: { email_sha256: { column: email, normalize: email, hash: sha256 } }
    payload:  { plan: plan, seen_at: updated_at }
    when:     { column: email, is: not_null }
destination:
  connection: crm
  type: http
  upsert: { method: POST, path: /audiences/42/members }
  remove: { method: DELETE, path: /audiences/42/members }
baseline: new-empty
batch:  { rows: 1000, bytes: 1MB, in_flight: 4 }
safety: { max_removals: 20%, empty_snapshot: hold }
`;

export interface Reading {
  readonly types?: SystemTypes | null;
  readonly env?: { readonly [name: string]: string };
  /** Secret files by path. */
  readonly files?: { readonly [path: string]: string };
  readonly environment?: string;
}

function access({ env = SECRETS, files = {} }: Reading): SecretAccess {
  return {
    env,
    readFile: (path) => {
      const text = files[path];
      if (text === undefined) throw new Error('no such file');
      return text;
    },
  };
}

/** The lines of a project that has errors; none where it is valid. */
export async function problemsOf(files: Files, reading: Reading = {}): Promise<readonly string[]> {
  const project = await createTestProject(files);
  try {
    const loaded = await loadProject(
      project.folder,
      reading.types === undefined ? SYSTEMS : reading.types,
      access(reading),
      reading.environment ?? null,
    );
    return loaded.kind === 'ok' ? [] : loaded.problems.map(problemText);
  } finally {
    await project.remove();
  }
}

/** The settings of a project that must be valid. */
export async function settingsOf(files: Files, reading: Reading = {}): Promise<ProjectSettings> {
  const project = await createTestProject(files);
  try {
    const loaded = await loadProject(
      project.folder,
      reading.types === undefined ? SYSTEMS : reading.types,
      access(reading),
      reading.environment ?? null,
    );
    if (loaded.kind === 'invalid') throw new Error(loaded.problems.map(problemText).join('\n'));
    return loaded.settings;
  } finally {
    await project.remove();
  }
}

/** The usual project with this mirror, `old` in it replaced. */
export function mirrorWith(old: string, replacement: string): Files {
  if (!MIRROR.includes(old)) throw new Error(`the mirror has no ${old}`);
  return { 'retl.yaml': PROJECT, 'mirrors/vip.yaml': MIRROR.replace(old, replacement) };
}

/** The usual project with `old` in retl.yaml replaced. */
export function projectWith(old: string, replacement: string): Files {
  if (!PROJECT.includes(old)) throw new Error(`retl.yaml has no ${old}`);
  return { 'retl.yaml': PROJECT.replace(old, replacement), 'mirrors/vip.yaml': MIRROR };
}
