/** `retl approve <mirror>…`: lets a parked run remove what it has shown. */

import type { Command } from 'commander';
import { answerCommand } from '../answer.ts';

export function approveCommand(): Command {
  return answerCommand('approve', {
    summary: 'let a parked run remove what it has shown',
    description:
      'Shows what a parked run would do, asks, and records the approval in the journal, with who and why. It holds for exactly ' +
      'the set that was shown: a larger one parks again. Without access to the journal the answer goes through Temporal. ' +
      'What a pattern or a tag stands for is asked about one by one.',
    examples: [
      ['retl approve vip-customers', 'look at what is asked, and answer with yes'],
      ['retl approve vip-customers --because "the spring campaign is over"', 'with a reason that is kept'],
      [
        `retl approve vip-customers --yes --shown sha256:${'0'.repeat(64)}`,
        'in a script: this set and no other',
      ],
    ],
  });
}
