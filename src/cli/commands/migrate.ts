/** `retl migrate`: brings the journal's schema up to date, as its owner. */

import type { Command } from 'commander';
import { type Invocation, newCommand } from '../command.ts';
import { readSettings, resolved } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { counted } from '../problems-view.ts';

export function migrateCommand(): Command {
  return newCommand(
    {
      name: 'migrate',
      summary: 'create or update the journal’s schema, as its owner',
      description:
        'Applies the migrations that the journal lacks, connected by `journal.owner_url`, and gives the runtime role of ' +
        '`journal.url` (or `journal.runtime_role`) its rights. Safe to run again, and from two places at once.',
      examples: [
        ['retl migrate', 'bring the journal up to date'],
        ['retl migrate --json', 'the names of what was applied'],
      ],
    },
    migrateJournal,
  );
}

async function migrateJournal({ output, project }: Invocation): Promise<ExitCode> {
  const { journal } = await readSettings(project);
  if (journal.ownerUrl === null)
    throw new Refusal(
      EXIT.usage,
      'no-owner',
      'retl.yaml names no `journal.owner_url`.',
      'Add it, as a reference to a URL whose role owns the journal’s database.',
    );
  const ownerUrl = resolved(project, journal.ownerUrl, 'journal.owner_url');
  const runtimeRole =
    journal.runtimeRole === null
      ? roleOf(safely(() => resolved(project, journal.url, 'journal.url')))
      : resolved(project, journal.runtimeRole, 'journal.runtime_role');
  const { migrate } = await import('../../journal/migrate.ts');
  const grantee = runtimeRole === null || runtimeRole === roleOf(ownerUrl) ? {} : { runtimeRole };
  const applied = await migrate({ ownerUrl, ...grantee });
  output.document({ applied, runtimeRole });
  for (const name of applied) output.line(`applied ${name}`);
  output.line(
    applied.length === 0 ? 'The journal is up to date.' : `${counted(applied.length, 'migration')} applied.`,
  );
  if (runtimeRole === null) output.note('No runtime role is known here; grant `retl_runtime` to it by hand.');
  return EXIT.ok;
}

/** The machine that migrates need not know the runtime's own URL. */
function safely(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** The user that a connection URL names. */
function roleOf(url: string | null): string | null {
  if (url === null || !URL.canParse(url)) return null;
  const { username } = new URL(url);
  return username === '' ? null : decodeURIComponent(username);
}
