/** `retl cancel <mirror>…`: stops runs and keeps what they have sealed. */

import type { Command } from 'commander';
import { controlCommand } from '../control.ts';

export function cancelCommand(): Command {
  return controlCommand('cancel', {
    summary: 'stop a run; the next one resumes it',
    description:
      'Stops launching requests. Those under way are finished and recorded, what was accepted stays accepted, and the ' +
      'sealed snapshot is kept: the next run resumes it. A finish that has begun is resolved first.',
    examples: [
      ['retl cancel vip-customers', 'stop the run that is under way'],
      ['retl cancel "vip-*"', 'list the runs of all of these, and ask'],
    ],
    asks: 'Cancel them',
    sent: 'asked to cancel; requests under way are finished and recorded first',
  });
}
