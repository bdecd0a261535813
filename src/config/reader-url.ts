/** By which URL people look at the journal: `journal.reader_url`, where what it refers to is known on this machine. */

import type { JournalSettings } from '../domain/settings.ts';
import { inProjectFile, resolveText, type SecretAccess } from './secrets.ts';

/** Workers' machines need no way to a reader's URL: there the workers' own serves. @throws RetlError `config.secret` */
export function resolveReaderUrl(
  { url, readerUrl }: JournalSettings,
  { env, readFile }: SecretAccess,
): string {
  const own = () => resolveText(url, env, readFile, inProjectFile('journal.url'));
  if (readerUrl === null) return own();
  try {
    return resolveText(readerUrl, env, readFile, inProjectFile('journal.reader_url'));
  } catch {
    return own();
  }
}
