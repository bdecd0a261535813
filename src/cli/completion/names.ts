/** The names that completion asks for: from this folder's files, and what is cheap from the journal. Nothing is ever said. */

import { setTimeout as sleep } from 'node:timers/promises';
import { loadProject } from '../../config/load.ts';
import { environmentsIn } from '../../config/load-base.ts';
import { openProject } from '../environment.ts';
import { readRuns, readUnresolved } from '../journal.ts';
import { mirrorNames } from '../known-mirrors.ts';
import { counted } from '../problems-view.ts';
import type { Candidate, Names } from './candidates.ts';

/** Longer than this nobody waits at a prompt. */
const WITHIN_MS = 1_500;

/** @param folder `--project`, and `environment` `--env`, where the command line has them. */
export function projectNames(folder: string | undefined, environment: string | undefined): Names {
  return {
    mirrors: () =>
      quietly(async () => {
        const found = await mirrorNames(await openProject(folder, environment));
        return found.map((value) => ({ value, about: '' }));
      }),
    tags: () =>
      quietly(async () => {
        const { dir } = await openProject(folder, environment);
        const loaded = await loadProject(dir, null, null);
        if (loaded.kind === 'invalid') return [];
        const tags = Object.values(loaded.settings.tags).flat();
        return [...new Set(tags)].sort().map((value) => ({
          value,
          about: counted(tags.filter((tag) => tag === value).length, 'mirror'),
        }));
      }),
    environments: () =>
      quietly(async () => {
        const { dir } = await openProject(folder);
        return (await environmentsIn(dir)).map((value) => ({ value, about: '' }));
      }),
    batches: (mirror) =>
      quietly(async () => {
        const project = await openProject(folder, environment);
        const [last] = await readRuns(project, mirror, 1);
        const found = last === undefined ? [] : await readUnresolved(project, last.runId);
        return found
          .filter(({ state }) => state === 'unknown')
          .map(({ batch, action, reason }) => ({ value: batch, about: `${action} ${reason ?? ''}`.trim() }));
      }),
  };
}

async function quietly(read: () => Promise<readonly Candidate[]>): Promise<readonly Candidate[]> {
  const late = sleep(WITHIN_MS, [], { ref: false });
  return Promise.race([read().catch(() => []), late]);
}
