/** `retl pause <mirror>…`: stops launching requests until `retl resume`. */

import type { Command } from 'commander';
import { controlCommand } from '../control.ts';

export function pauseCommand(): Command {
  return controlCommand('pause', {
    summary: 'hold a run until `retl resume`',
    description:
      'Stops launching requests; those under way are finished and recorded. The run waits, for days if need be, until ' +
      '`retl resume`.',
    examples: [
      ['retl pause vip-customers', 'hold the run that is under way'],
      ['retl pause "*"', 'hold every run'],
    ],
    sent: 'asked to pause; `retl resume` goes on',
  });
}
