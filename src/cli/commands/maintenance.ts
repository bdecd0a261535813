/** `retl maintenance`: what runs leave behind, and when it goes. */

import type { Command } from 'commander';
import { newGroup } from '../command.ts';
import { maintenanceRunCommand } from './maintenance-run.ts';
import { maintenanceStatusCommand } from './maintenance-status.ts';

export function maintenanceCommand(): Command {
  return newGroup(
    {
      name: 'maintenance',
      summary: 'take away what runs have left behind',
      description:
        'Once a day, unless `maintenance` of retl.yaml says otherwise, what nobody needs any more goes from the journal. ' +
        '`retl schedules apply` makes its schedule; these commands do it now, and tell how it goes.',
      examples: [
        ['retl maintenance status', 'what waits to go, and how the last one went'],
        ['retl maintenance run', 'now'],
      ],
    },
    [maintenanceStatusCommand(), maintenanceRunCommand()],
  );
}
