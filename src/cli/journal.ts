/** The journal for commands that look at it or resolve a batch, with connections that are closed whatever happens. */

import { resolveReaderUrl } from '../config/reader-url.ts';
import type { RunState } from '../domain/run.ts';
import type { ParkedRun } from '../journal/approvals.ts';
import type { inspectJournal, MirrorSummary, RunSummary } from '../journal/inspect.ts';
import type { BatchView } from '../journal/resolve.ts';
import { type Project, readSettings, resolved } from './environment.ts';

/** A connection to the journal, as its own functions take it. */
export type Journal = Parameters<Parameters<typeof inspectJournal>[1]>[0];

/** @throws JournalError */
export async function withJournal<T>(project: Project, work: (journal: Journal) => Promise<T>): Promise<T> {
  const url = await journalUrl(project);
  const { inspectJournal } = await import('../journal/inspect.ts');
  return inspectJournal(url, work);
}

/**
 * The same for commands that only look: as the person who looks (`journal.reader_url`), where that URL is known here.
 * @throws JournalError
 */
export async function withReader<T>(project: Project, work: (journal: Journal) => Promise<T>): Promise<T> {
  const url = resolveReaderUrl((await readSettings(project)).journal, project.secrets);
  const { inspectJournal } = await import('../journal/inspect.ts');
  return inspectJournal(url, work);
}

/** The last runs, newest first; of one mirror, or of all; in one of `states`, or in any. */
export async function readRuns(
  project: Project,
  mirror: string | null,
  limit: number,
  states: readonly RunState[] | null = null,
): Promise<readonly RunSummary[]> {
  const { listRuns } = await import('../journal/inspect.ts');
  const wanted = { ...(mirror === null ? {} : { mirror }), ...(states === null ? {} : { states }), limit };
  return withReader(project, (journal) => listRuns(journal, wanted));
}

export async function readMirrors(project: Project): Promise<readonly MirrorSummary[]> {
  const { listMirrors } = await import('../journal/inspect.ts');
  return withReader(project, listMirrors);
}

/** The batches of a run that are neither accepted nor proven absent. */
export async function readUnresolved(project: Project, runId: string): Promise<readonly BatchView[]> {
  const { unresolvedBatches } = await import('../journal/resolve.ts');
  return withReader(project, (journal) => unresolvedBatches(journal, runId));
}

/** What the guard asks of each of these mirrors, by name; those that it asks nothing of are not in it. */
export async function readParked(
  project: Project,
  mirrors: readonly string[],
): Promise<ReadonlyMap<string, ParkedRun>> {
  const found = new Map<string, ParkedRun>();
  if (mirrors.length === 0) return found;
  const { parkedRun } = await import('../journal/approvals.ts');
  await withReader(project, async (journal) => {
    for (const mirror of new Set(mirrors)) {
      const parked = await parkedRun(journal, mirror);
      if (parked !== null) found.set(mirror, parked);
    }
  });
  return found;
}

async function journalUrl(project: Project): Promise<string> {
  const { journal } = await readSettings(project);
  return resolved(project, journal.url, 'journal.url');
}

/**
 * The workflow id that the journal names for the open run of a mirror, where it is in `namespace`; `undefined` where
 * there is none or the journal cannot be asked (a machine may reach Temporal alone).
 */
export async function holderOf(
  project: Project,
  mirror: string,
  namespace: string,
): Promise<string | undefined> {
  const [last] = await readRuns(project, mirror, 1).catch(() => []);
  return last === undefined ? undefined : (workflowOf(last, namespace) ?? undefined);
}

/** The workflow that holds an open run, by id; `null` where none does, or one of another namespace. */
export function workflowOf(run: RunSummary, namespace: string): string | null {
  if (run.state !== 'open' || run.released !== null) return null;
  const prefix = `${namespace}/`;
  return run.holder.startsWith(prefix) ? run.holder.slice(prefix.length) : null;
}
