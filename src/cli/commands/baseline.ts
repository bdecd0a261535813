/** `retl baseline`: what a target held before its first run. */

import type { Command } from 'commander';
import { newGroup } from '../command.ts';
import { baselineImportCommand } from './baseline-import.ts';

export function baselineCommand(): Command {
  return newGroup(
    {
      name: 'baseline',
      summary: 'tell the journal what a target holds already',
      description:
        'A mirror with `baseline: tracked` takes over a target that other means have filled. Before its first run the journal ' +
        'must know every member there, so that leftovers are found and removed.',
      examples: [
        [
          'retl baseline import vip-customers --from audience.csv --because "export of Monday"',
          'look at the file, and answer',
        ],
      ],
    },
    [baselineImportCommand()],
  );
}
