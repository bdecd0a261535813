/** By which URL people look at the journal: `journal.reader_url`, where what it refers to is known on this machine. */

import type { JournalSettings } from '../domain/settings.ts';
import { resolveText, type SecretAccess } from './secrets.ts';

/** Workers' machines need no way to a reader's URL: there the workers' own serves. @throws RetlError `config.secret` */
export function resolveReaderUrl(
  { url, readerUrl }: JournalSettings,
  { env, readFile }: SecretAccess,
): string {
  if (readerUrl === null) return resolveText(url, env, readFile);
  try {
    return resolveText(readerUrl, env, readFile);
  } catch {
    return resolveText(url, env, readFile);
  }
}
