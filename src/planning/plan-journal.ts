/** The journal as the person who plans: by which URL, and with which rights. */

import { resolveReaderUrl } from '../config/reader-url.ts';
import type { SecretAccess } from '../config/secrets.ts';
import type { JournalSettings } from '../domain/settings.ts';
import { mayReadValues } from '../journal/explain.ts';
import { requireSchema } from '../journal/migrate.ts';
import { openJournal } from '../journal/pool.ts';
import type { JournalPool } from '../journal/runs.ts';
import { mayReadMembers } from '../journal/standing.ts';

export type Right = 'granted' | 'plan-not-allowed' | 'values-not-allowed';

/**
 * Opens `journal.reader_url` where that is known on this machine, else `journal.url`; closes it whatever happens.
 * @throws RetlError `config.secret`, `journal.*`; JournalError; what `work` throws
 */
export async function withPlanJournal<T>(
  settings: JournalSettings,
  secrets: SecretAccess,
  work: (journal: JournalPool) => Promise<T>,
): Promise<T> {
  const journal = openJournal({
    url: resolveReaderUrl(settings, secrets),
    max: 1,
    applicationName: 'retl plan',
  });
  try {
    await requireSchema(journal);
    return await work(journal);
  } finally {
    await journal.end();
  }
}

/** Hashes of members are for readers and workers; values are a right of its own. @throws JournalError */
export async function rightToPlan(journal: JournalPool, values: boolean): Promise<Right> {
  if (!(await mayReadMembers(journal))) return 'plan-not-allowed';
  return values && !(await mayReadValues(journal)) ? 'values-not-allowed' : 'granted';
}
