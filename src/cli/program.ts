/** The command `retl`: its commands, its shared options and its help. */

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addSharedOptions } from './command.ts';
import { abortCommand } from './commands/abort.ts';
import { approveCommand } from './commands/approve.ts';
import { baselineCommand } from './commands/baseline.ts';
import { cancelCommand } from './commands/cancel.ts';
import { checkCommand } from './commands/check.ts';
import { completionCommand } from './commands/completion.ts';
import { devCommand } from './commands/dev.ts';
import { explainCommand } from './commands/explain.ts';
import { findCommand } from './commands/find.ts';
import { indexCommand } from './commands/index-group.ts';
import { initCommand } from './commands/init.ts';
import { logCommand } from './commands/log.ts';
import { maintenanceCommand } from './commands/maintenance.ts';
import { migrateCommand } from './commands/migrate.ts';
import { pauseCommand } from './commands/pause.ts';
import { planCommand } from './commands/plan.ts';
import { pollCommand } from './commands/poll.ts';
import { rejectCommand } from './commands/reject.ts';
import { rejectionsCommand } from './commands/rejections.ts';
import { releaseCommand } from './commands/release.ts';
import { resolveCommand } from './commands/resolve.ts';
import { resumeCommand } from './commands/resume.ts';
import { runCommand } from './commands/run.ts';
import { runsCommand } from './commands/runs.ts';
import { schedulesCommand } from './commands/schedules.ts';
import { statusCommand } from './commands/status.ts';
import { workerCommand } from './commands/worker.ts';
import { exitCodeLines } from './exit-codes.ts';

const GROUPS: readonly (readonly [string, readonly (() => Command)[]])[] = [
  ['Begin:', [initCommand, devCommand, migrateCommand, workerCommand, checkCommand, baselineCommand]],
  ['Run:', [planCommand, runCommand, statusCommand, runsCommand]],
  ['Understand:', [explainCommand, findCommand, rejectionsCommand, logCommand]],
  ['Derived from the log:', [indexCommand]],
  ['Run regularly:', [schedulesCommand, maintenanceCommand]],
  [
    'Control a run:',
    [
      cancelCommand,
      abortCommand,
      pauseCommand,
      resumeCommand,
      pollCommand,
      approveCommand,
      rejectCommand,
      resolveCommand,
      releaseCommand,
    ],
  ],
  ['Your shell:', [completionCommand]],
];

/** @param json whether the command line asks for JSON: then wrong usage is not told in prose. */
export function buildProgram(json: boolean): Command {
  const program = new Command('retl')
    .description('Keeps destinations holding exactly what a query returns.')
    .version(version(), '--version', 'show the version')
    .showSuggestionAfterError()
    .helpCommand(false);
  addSharedOptions(program);
  for (const [group, commands] of GROUPS) {
    program.commandsGroup(group);
    for (const make of commands) program.addCommand(make());
  }
  program.addHelpText('after', afterHelp());
  prepare(program, 'retl', json);
  return program;
}

/** Errors are thrown, so that one place decides the exit code. */
function prepare(command: Command, line: string, json: boolean): void {
  command.exitOverride().showHelpAfterError(`\`${line} --help\` shows how it is used.`);
  if (json) command.configureOutput({ writeErr: () => undefined });
  for (const below of command.commands) prepare(below, `${line} ${below.name()}`, json);
}

function afterHelp(): string {
  const begin = [
    'A first mirror:',
    '  $ retl init                # writes retl.yaml and mirrors/example.yaml',
    '  $ retl dev                 # starts PostgreSQL, Temporal and a worker on this machine',
    '  $ retl check               # in another terminal: is everything in order?',
    '  $ retl run example         # mirrors',
  ];
  return `\n${begin.join('\n')}\n\nExit codes:\n${exitCodeLines().join('\n')}`;
}

function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { version: found } = JSON.parse(text) as { readonly version: string };
  return found;
}
