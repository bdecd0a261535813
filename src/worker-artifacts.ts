/** The store of artifacts that retl.yaml names, as the worker opens it: with those that were used before, and the journal's own. */

import { expectValid, loadBase } from './config/load.ts';
import { inProjectFile, resolveReferences, secretsOf } from './config/secrets.ts';
import { RetlError } from './domain/errors.ts';
import type { ArtifactSettings, Options } from './domain/settings.ts';
import { chainArtifacts, lazyArtifacts } from './indexing/artifacts/chain.ts';
import { lookAtStore } from './indexing/artifacts/look.ts';
import { openArtifacts } from './indexing/artifacts/open.ts';
import { type ArtifactOptions, artifactOptions } from './indexing/artifacts/options.ts';
import type { ArtifactStore } from './journal/artifact-store.ts';
import type { JournalPool } from './journal/runs.ts';

/** Opened when it is first asked something. Its methods throw RetlError `artifact.misconfigured`, `config.…` besides what a store's do. */
export function projectArtifacts(projectDir: string, journal: JournalPool): ArtifactStore {
  return lazyArtifacts(async () => {
    const { artifacts } = expectValid(await loadBase(projectDir));
    const open = async (options: ArtifactOptions) =>
      (await openArtifacts(options, journal, projectDir)).store;
    const [current, ...former] = placesOf(artifacts).map(({ place, options }) =>
      judged(projectDir, options, place),
    );
    if (current === undefined) throw new Error('there always is a current store');
    // The journal's is what a project begins with.
    const isThere = [current, ...former].some(({ type }) => type === 'journal');
    const before = isThere ? former : [...former, { type: 'journal' } as const];
    return chainArtifacts(await open(current), await Promise.all(before.map(open)));
  });
}

interface StorePlace {
  /** In retl.yaml. */
  readonly place: string;
  /** As written there. */
  readonly options: Options;
}

/** The current one first. */
function placesOf({ current, former }: ArtifactSettings): readonly StorePlace[] {
  const before = former.map((options, n) => ({ place: `artifacts.former[${n}]`, options }));
  return [{ place: 'artifacts', options: current }, ...before];
}

/** The stores that retl.yaml names, each by itself, to be looked at. */
export function storesToLookAt(projectDir: string, settings: ArtifactSettings, journal: JournalPool) {
  return placesOf(settings).map(({ place, options: written }, n) => ({
    place,
    /** @returns its type and what was found, in words. @throws RetlError, JournalError */
    async look(): Promise<string> {
      const options = judged(projectDir, written, place);
      const found = await lookAtStore({ options, projectDir, isWritten: n === 0 }, journal);
      return `${options.type}, ${found}`;
    },
  }));
}

/** @throws RetlError `artifact.misconfigured`, which names the option and no value; `config.secret` */
function judged(projectDir: string, written: Options, place: string): ArtifactOptions {
  const { env, readFile } = secretsOf(projectDir);
  const parsed = artifactOptions.safeParse(resolveReferences(written, env, readFile, inProjectFile(place)));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = [place, ...(issue?.path ?? [])].join('.');
  throw new RetlError('artifact.misconfigured', { rule: 'option', option: path, why: issue?.message ?? '' });
}
