/** `retl poll <mirror>`: asks at once what became of work that the destination has taken and not finished. */

import type { Command } from 'commander';
import { controlCommand } from '../control.ts';

export function pollCommand(): Command {
  return controlCommand('poll', {
    summary: 'ask the destination at once about work that it has not finished',
    description:
      'A run whose destination works asynchronously asks about its jobs again and again, at longer and longer intervals. ' +
      'This makes it ask about all of them now, also where it is blocked because they took too long. Nothing is sent twice.',
    examples: [['retl poll vip-customers', 'ask about the open jobs now']],
    sent: 'asked to poll now',
  });
}
