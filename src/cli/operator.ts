/** Who decides: kept in the journal beside the decision. */

import { userInfo } from 'node:os';
import type { Journal } from './journal.ts';

/** The user of this machine and the journal's role; e.g. `ada, as retl_worker`. @throws JournalError */
export async function operatorOf(journal: Journal): Promise<string> {
  const { roleOf } = await import('../journal/inspect.ts');
  return `${localUser()}, as ${await roleOf(journal)}`;
}

/** Containers may run as a number that has no name. */
function localUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
