/** `retl index`: what is derived from the log. */

import type { Command } from 'commander';
import { newGroup } from '../command.ts';
import { indexForgetCommand } from './index-forget.ts';
import {
  indexCheckpointsCommand,
  indexShowCommand,
  indexStatusCommand,
  indexVerifyCommand,
} from './index-look.ts';
import {
  indexRebuildCommand,
  indexRollbackCommand,
  indexRunCommand,
  indexSignalCommands,
} from './index-run.ts';

export function indexCommand(): Command {
  return newGroup(
    {
      name: 'index',
      summary: 'follow the log with derived indexes, and look after them',
      description:
        'An index says who is in which mirror, or what happened to each member, and is made from the log alone. `indexes:` of ' +
        'retl.yaml has those of a project.',
      examples: [
        ['retl index run people', 'follow the log from now on'],
        ['retl index status', 'how far each is, and how far behind'],
        ['retl index verify people', 'compare it with the log'],
      ],
    },
    [
      indexStatusCommand(),
      indexRunCommand(),
      ...indexSignalCommands(),
      indexRebuildCommand(),
      indexRollbackCommand(),
      indexForgetCommand(),
      indexVerifyCommand(),
      indexCheckpointsCommand(),
      indexShowCommand(),
    ],
  );
}
