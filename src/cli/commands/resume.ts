/** `retl resume <mirror>…`: goes on after `retl pause`, and looks again at whatever the run waits for. */

import type { Command } from 'commander';
import { controlCommand } from '../control.ts';

export function resumeCommand(): Command {
  return controlCommand('resume', {
    summary: 'go on after `retl pause`, or look again at once',
    description:
      'Goes on after `retl pause`. A run that waits to try again, or that is blocked, looks again at once. ' +
      'A run that has ended is not resumed by this: `retl run` does that.',
    examples: [
      ['retl resume vip-customers', 'let the run go on'],
      ['retl resume "*"', 'every run'],
    ],
    sent: 'asked to go on',
  });
}
