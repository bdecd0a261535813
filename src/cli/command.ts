/** What every command has in common: its shared options, its examples, and one way from an action to an exit code. */

import { Command, InvalidArgumentError, Option } from 'commander';
import { MIRROR_NAME } from '../config/mirror-schema.ts';
import { openProject, type Project } from './environment.ts';
import type { ExitCode } from './exit-codes.ts';
import { showFailure } from './failures.ts';
import { Output } from './output.ts';

export interface Invocation {
  readonly output: Output;
  readonly project: Project;
  /** Positional arguments, in order. */
  readonly args: readonly string[];
  /** The command's own options. */
  readonly options: { readonly [name: string]: unknown };
}

export type Action = (invocation: Invocation) => Promise<ExitCode>;

export interface CommandText {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What it does, for its own help. */
  readonly description: string;
  /** Each a command line that works, and what it does. */
  readonly examples: readonly (readonly [line: string, meaning: string])[];
}

/** @param readsDev `false` for the command that starts the development servers, and is not led by earlier ones. */
export function newCommand(text: CommandText, action: Action, readsDev = true): Command {
  const command = new Command(text.name).summary(text.summary).description(text.description);
  addSharedOptions(command);
  command.addHelpText('after', `\nExamples:\n${exampleLines(text.examples).join('\n')}`);
  return command.action(async () => {
    process.exitCode = await perform(command, action, readsDev);
  });
}

/** A command that is nothing but the commands below it. */
export function newGroup(text: CommandText, commands: readonly Command[]): Command {
  const group = new Command(text.name).summary(text.summary).description(text.description).helpCommand(false);
  addSharedOptions(group);
  group.addHelpText('after', `\nExamples:\n${exampleLines(text.examples).join('\n')}`);
  for (const command of commands) group.addCommand(command);
  return group;
}

/** From the program down to the command itself: what stands nearer goes before. */
function lineOf(command: Command): readonly Command[] {
  return command.parent === null ? [command] : [...lineOf(command.parent), command];
}

async function perform(command: Command, action: Action, readsDev: boolean): Promise<ExitCode> {
  const options: Invocation['options'] = Object.fromEntries(
    lineOf(command).flatMap((one) => Object.entries(one.opts())),
  );
  const output = new Output({
    json: options.json === true,
    debug: options.debug === true,
    color: isColored(command),
  });
  try {
    const project = await openProject(textIn(options.project), textIn(options.env), readsDev);
    if (project.environment !== null) output.note(output.style('dim', `Environment ${project.environment}`));
    return await action({ output, project, args: command.args, options });
  } catch (error) {
    return showFailure(output, error);
  }
}

function textIn(option: unknown): string | undefined {
  return typeof option === 'string' ? option : undefined;
}

function isColored(command: Command): boolean {
  if (lineOf(command).some((one) => one.opts().color === false)) return false;
  const { NO_COLOR, FORCE_COLOR } = process.env;
  if (NO_COLOR !== undefined && NO_COLOR !== '') return false;
  return process.stderr.isTTY === true || (FORCE_COLOR !== undefined && FORCE_COLOR !== '0');
}

/** The same options before and after the command's name. */
export function addSharedOptions(command: Command): void {
  command
    .addOption(
      new Option('--project <dir>', 'folder that holds retl.yaml (default: the nearest one upwards)'),
    )
    .addOption(new Option('--env <name>', 'environment of retl.yaml (default: RETL_ENV, else none)'))
    .addOption(new Option('--json', 'write JSON, for programs'))
    .addOption(new Option('--no-color', 'write without colours (as NO_COLOR does)'))
    .addOption(new Option('--debug', 'show the stack of an error; it may hold values'));
}

function exampleLines(examples: CommandText['examples']): readonly string[] {
  const width = Math.max(...examples.map(([line]) => line.length));
  return examples.map(([line, meaning]) => `  $ ${line.padEnd(width)}  # ${meaning}`);
}

/** Parses the argument `<mirror>`. */
export function mirrorArgument(text: string): string {
  const name = text.replace(/^mirrors\//, '').replace(/\.(yaml|m?[tj]s)$/, '');
  if (!MIRROR_NAME.test(name))
    throw new InvalidArgumentError('A mirror’s name has 1 to 63 lower-case letters, digits and `-`.');
  return name;
}

/** The first positional argument, as {@link mirrorArgument} reads it; `null` where none is given. */
export function mirrorOf({ args }: Invocation): string | null {
  const [first] = args;
  return first === undefined ? null : mirrorArgument(first);
}

/** Of commands whose argument is required. */
export function requiredMirror(invocation: Invocation): string {
  const mirror = mirrorOf(invocation);
  if (mirror === null) throw new InvalidArgumentError('A mirror’s name is missing.');
  return mirror;
}
