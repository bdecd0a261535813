/** `retl schedules`: when mirrors run by themselves. */

import type { Command } from 'commander';
import { newGroup } from '../command.ts';
import { schedulesApplyCommand } from './schedules-apply.ts';
import {
  schedulesDeleteCommand,
  schedulesPauseCommand,
  schedulesResumeCommand,
  schedulesTriggerCommand,
} from './schedules-control.ts';
import { schedulesListCommand } from './schedules-list.ts';

export function schedulesCommand(): Command {
  return newGroup(
    {
      name: 'schedules',
      summary: 'apply, list and control the schedules of mirrors',
      description:
        'Mirrors with a `schedule:` run by themselves, through Temporal Schedules. What stands in the files takes effect ' +
        'with `retl schedules apply`; the others look at what is in Temporal, and control it.',
      examples: [
        ['retl schedules apply', 'make Temporal’s schedules what the files say'],
        ['retl schedules list', 'next starts, last outcomes, what was skipped and missed'],
        ['retl schedules pause vip-customers', 'start no more runs of it until resumed'],
      ],
    },
    [
      schedulesApplyCommand(),
      schedulesListCommand(),
      schedulesPauseCommand(),
      schedulesResumeCommand(),
      schedulesTriggerCommand(),
      schedulesDeleteCommand(),
    ],
  );
}
