/** `retl reject <mirror>…`: ends a parked run; nobody is removed. */

import type { Command } from 'commander';
import { answerCommand } from '../answer.ts';

export function rejectCommand(): Command {
  return answerCommand('reject', {
    summary: 'end a parked run; nobody is removed',
    description:
      'Shows what a parked run would do, asks, and records the rejection in the journal, with who and why. The run ends, what ' +
      'was accepted stays accepted, and the next run reads the source anew.',
    examples: [
      ['retl reject vip-customers --because "the upstream job had failed"', 'with a reason that is kept'],
      ['retl reject "vip-*" --yes', 'every parked run of these'],
    ],
  });
}
