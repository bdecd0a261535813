/** The journal as the programs beside the worker use it: opened for one piece of work, with this release's schema. */

import { inProjectFile, resolveText, secretsOf } from './config/secrets.ts';
import type { JournalSettings } from './domain/settings.ts';
import { requireSchema } from './journal/migrate.ts';
import { openJournal } from './journal/pool.ts';
import type { JournalPool } from './journal/runs.ts';

/**
 * @param work gets the journal's URL, too, its references resolved
 * @param connections at once, at most
 * @throws RetlError `config.secret`, and as {@link requireSchema}; what `work` throws
 */
export async function withJournal<T>(
  projectDir: string,
  settings: Pick<JournalSettings, 'url'>,
  work: (journal: JournalPool, url: string) => Promise<T>,
  connections = 1,
): Promise<T> {
  const { env, readFile } = secretsOf(projectDir);
  const url = resolveText(settings.url, env, readFile, inProjectFile('journal.url'));
  const journal = openJournal({ url, max: connections });
  try {
    await requireSchema(journal);
    return await work(journal, url);
  } finally {
    await journal.end();
  }
}
