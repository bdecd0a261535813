/** `retl baseline`: what a target held before its first run. */

import type { Command } from 'commander';
import { newGroup } from '../command.ts';
import { baselineAttestCommand } from './baseline-attest.ts';
import { baselineImportCommand } from './baseline-import.ts';
import { baselineVerifyCommand } from './baseline-verify.ts';

export function baselineCommand(): Command {
  return newGroup(
    {
      name: 'baseline',
      summary: 'tell the journal what a target holds already',
      description:
        'A mirror with `baseline: tracked` takes over a target that other means have filled. Before its first run the journal ' +
        'must know every member there, so that leftovers are found and removed. One with `baseline: new-empty` begins with a ' +
        'target that holds nobody: the destination shows that, or somebody vouches for it.',
      examples: [
        [
          'retl baseline import vip-customers --from audience.csv --because "export of Monday"',
          'look at the file, and answer',
        ],
        ['retl baseline verify vip-customers', 'compare what the target lists with what the journal knows'],
        [
          'retl baseline attest vip-customers --empty --because "made the audience this morning"',
          'look at the target, and answer',
        ],
      ],
    },
    [baselineImportCommand(), baselineVerifyCommand(), baselineAttestCommand()],
  );
}
