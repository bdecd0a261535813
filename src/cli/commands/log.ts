/** `retl log`: the journal's list of everything that was ever accepted. */

import type { Command } from 'commander';
import { newGroup } from '../command.ts';
import { logCompactCommand } from './log-compact.ts';
import { logStatusCommand } from './log-status.ts';
import { logVerifyCommand } from './log-verify.ts';

export function logCommand(): Command {
  return newGroup(
    {
      name: 'log',
      summary: 'verify the log of what was accepted, look at it, shorten it',
      description:
        'Everything that a destination has accepted is an entry of one append-only log, each bound to the one before by its hash. ' +
        'Indexes are made of it. `verify` recomputes it, `compact` turns its older part into a log snapshot.',
      examples: [
        ['retl log status', 'where it begins and ends, and what it takes'],
        ['retl log verify', 'is it what was written?'],
        ['retl log compact --before 90d', 'keep single effects for 90 days'],
      ],
    },
    [logStatusCommand(), logVerifyCommand(), logCompactCommand()],
  );
}
