/** `retl abort <mirror>…`: ends runs for good. */

import type { Command } from 'commander';
import { controlCommand } from '../control.ts';

export function abortCommand(): Command {
  return controlCommand('abort', {
    summary: 'end a run for good; the next one reads the source anew',
    description:
      'Ends the run as soon as nothing in it is unresolved, and discards its snapshot. What was accepted stays accepted ' +
      'and takes part in the next comparison. An abort that comes after the finish is reported as too late.',
    examples: [
      ['retl abort vip-customers', 'give up the run that is under way'],
      ['retl abort "vip-*" --yes', 'of all of these, without a question'],
    ],
    asks: 'Abort them, and give up what they have read',
    sent: 'asked to abort; requests under way are finished and recorded first',
  });
}
