/** Commands that look at the journal as the person who looks: which schema, which rights, and what a refusal says. */

import type { Invocation } from './command.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { type Journal, withReader } from './journal.ts';

export const RIGHTS_HELP =
  'Connects by `journal.reader_url` where retl.yaml names it, else by `journal.url`. Needs the role retl_inspector; ' +
  '--values needs retl_reader, which is granted to people who may see members’ data.';

/**
 * Reads the journal; with `--values`, only for a role that may see them.
 * @throws Refusal `values-not-allowed`; RetlError `journal.*`; JournalError
 */
export async function readAllowed<T>(
  { project, options }: Invocation,
  work: (journal: Journal) => Promise<T>,
): Promise<T> {
  return withReader(project, async (journal) => {
    const { requireSchema } = await import('../journal/migrate.ts');
    await requireSchema(journal);
    if (options.values === true) await requireValues(journal, 'Leave --values out, or have it granted');
    return work(journal);
  });
}

/** @param or what may be done. @throws Refusal `values-not-allowed`; JournalError */
export async function requireValues(journal: Journal, or: string): Promise<void> {
  const { mayReadValues } = await import('../journal/explain.ts');
  if (await mayReadValues(journal)) return;
  throw new Refusal(
    EXIT.usage,
    'values-not-allowed',
    'This role may not read values.',
    `${or}: GRANT retl_reader TO <role>; and name its URL as \`journal.reader_url\`.`,
  );
}
