/**
 * Reads `retl.yaml`: journal, Temporal and connections. What a connection's options may be is judged elsewhere
 * (check-connections.ts), by the adapter of its type.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TASK_QUEUE } from '../domain/messages.ts';
import type {
  ConnectionSettings,
  JournalSettings,
  ProjectSettings,
  TemporalSettings,
} from '../domain/settings.ts';
import { missingReferences, secretProblems } from './connections.ts';
import { issueProblems, valueAt } from './issue-problems.ts';
import { plainOptions } from './json-value.ts';
import type { Problem } from './problem.ts';
import { type ProjectInputFile, projectInput } from './project-schema.ts';
import type { SecretAccess } from './secrets.ts';
import { parseYamlFile, type YamlFile } from './yaml-file.ts';

export const PROJECT_FILE = 'retl.yaml';

/** `retl.yaml` alone: enough to reach the journal and Temporal while a mirror's file is broken. */
export type BaseSettings = Omit<ProjectSettings, 'mirrors' | 'schedules' | 'tags'>;

export interface Base {
  readonly file: YamlFile | null;
  readonly settings: BaseSettings | null;
  readonly problems: readonly Problem[];
}

export async function readBase(projectDir: string, secrets: SecretAccess | null): Promise<Base> {
  const bytes = await readFile(join(projectDir, PROJECT_FILE)).catch(() => null);
  if (bytes === null) {
    const place = { file: PROJECT_FILE, line: null, column: null, path: '' };
    const message = 'The file is missing or cannot be read.';
    const remedy =
      'Go to the project’s folder, name it with --project, or write a first one with `retl init`.';
    return { file: null, settings: null, problems: [{ ...place, message, remedy }] };
  }
  const parsed = parseYamlFile(PROJECT_FILE, bytes);
  if (parsed.kind === 'invalid') return { file: null, settings: null, problems: parsed.problems };
  const { file } = parsed;
  const result = projectInput.safeParse(file.value);
  const problems = [...baseSecretProblems(file, secrets)];
  if (result.success) return { file, settings: baseSettings(result.data), problems };
  const place = { file, base: [], schema: projectInput, value: file.value, showValues: false };
  problems.push(...issueProblems(place, result.error.issues));
  return { file, settings: null, problems };
}

/**
 * `owner_url` is looked up by `retl migrate` alone, so that only the machine that migrates needs it; `reader_url` by the
 * commands that look, so that workers need no way to it.
 */
function baseSecretProblems(file: YamlFile, secrets: SecretAccess | null): readonly Problem[] {
  const texts = (section: string, keys: readonly string[]) =>
    Object.fromEntries(
      keys.flatMap((key) => {
        const value = valueAt(file.value, [section, key]);
        return typeof value === 'string' ? [[key, value]] : [];
      }),
    );
  const journal = texts('journal', ['url', 'owner_url', 'reader_url', 'runtime_role']);
  const temporal = texts('temporal', ['profile', 'address', 'namespace', 'task_queue']);
  const problems = [
    ...secretProblems(file, ['journal'], journal, []),
    ...secretProblems(file, ['temporal'], temporal, []),
  ];
  if (secrets === null) return problems;
  const { owner_url: _, reader_url: __, ...runtime } = journal;
  return [
    ...problems,
    ...missingReferences(file, ['journal'], runtime, secrets),
    ...missingReferences(file, ['temporal'], temporal, secrets),
  ];
}

function baseSettings(input: ProjectInputFile): BaseSettings {
  const journal: JournalSettings = {
    url: input.journal.url,
    readerUrl: input.journal.reader_url ?? null,
    ownerUrl: input.journal.owner_url ?? null,
    runtimeRole: input.journal.runtime_role ?? null,
  };
  const temporal: TemporalSettings = {
    profile: input.temporal?.profile ?? null,
    address: input.temporal?.address ?? null,
    namespace: input.temporal?.namespace ?? null,
    taskQueue: input.temporal?.task_queue ?? TASK_QUEUE,
  };
  const connections = Object.entries(input.connections).map(
    ([name, { type, ...options }]): [string, ConnectionSettings] => [
      name,
      { type, options: plainOptions(options) },
    ],
  );
  return { journal, temporal, connections: Object.fromEntries(connections) };
}
