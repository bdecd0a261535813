/**
 * What may stand at the cursor of a command line, decided from the program's own commands and options, so that completion
 * never differs from what is parsed.
 *
 * A small one of our own. Of the libraries, `tabtab` and `omelette` are released no more and want the commands listed a
 * second time; `@bomb.sh/tab` reads them from commander, but is before its first stable release, its answers must be there
 * at once, and a mirror's batches come from the journal.
 */

import type { Argument, Command, Option } from 'commander';

export interface Candidate {
  readonly value: string;
  /** One line; may be empty. */
  readonly about: string;
}

/** Names that are not in the program. Each may be slow or fail: then there are none. */
export interface Names {
  mirrors(): Promise<readonly Candidate[]>;
  tags(): Promise<readonly Candidate[]>;
  /** Environments of retl.yaml. */
  environments(): Promise<readonly Candidate[]>;
  /** Of a mirror, those that a person may decide. */
  batches(mirror: string): Promise<readonly Candidate[]>;
}

/** `folders` and `files`: the shell knows them better. */
export type Completion =
  | { readonly kind: 'candidates'; readonly candidates: readonly Candidate[] }
  | { readonly kind: 'folders' | 'files' };

/** @param words all after the program's name; the last is being typed, and may be empty. */
export async function complete(
  program: Command,
  words: readonly string[],
  names: Names,
): Promise<Completion> {
  const current = words.at(-1) ?? '';
  const place = placeOf(program, words.slice(0, -1).map(unquoted));
  const assigned = /^(--[a-z-]+)=(.*)$/.exec(current);
  if (assigned !== null) {
    const [, flag = '', value = ''] = assigned;
    const found = await valuesOf(optionOf(place.command, flag), names);
    if (found.kind !== 'candidates') return found;
    const full = matching(found.candidates, value).map((one) => ({ ...one, value: `${flag}=${one.value}` }));
    return { kind: 'candidates', candidates: full };
  }
  const found = await atCursor(place, unquoted(current), names);
  return found.kind === 'candidates'
    ? { kind: 'candidates', candidates: matching(found.candidates, unquoted(current)) }
    : found;
}

/** Where the words before the cursor lead. */
interface Place {
  readonly command: Command;
  /** Positional arguments of the command so far. */
  readonly args: readonly string[];
  /** The option that waits for its value. */
  readonly pending: Option | null;
  /** Options given so far. */
  readonly given: readonly Option[];
  /** Whether `--` has ended the options. */
  readonly isPlain: boolean;
}

function placeOf(program: Command, words: readonly string[]): Place {
  let place: Place = { command: program, args: [], pending: null, given: [], isPlain: false };
  for (const word of words) place = step(place, word);
  return place;
}

function step(place: Place, word: string): Place {
  if (place.pending !== null) return { ...place, pending: null };
  if (word === '--' && !place.isPlain) return { ...place, isPlain: true };
  if (word.startsWith('-') && !place.isPlain) {
    const option = optionOf(place.command, word.replace(/=.*$/, ''));
    if (option === null) return place;
    const pending = option.required && !word.includes('=') ? option : null;
    return { ...place, pending, given: [...place.given, option] };
  }
  const below =
    place.args.length === 0 ? place.command.commands.find((one) => one.name() === word) : undefined;
  return below === undefined ? { ...place, args: [...place.args, word] } : { ...place, command: below };
}

/** The command's own, and those of the commands above it. */
function optionsOf(command: Command): readonly Option[] {
  const own = command.createHelp().visibleOptions(command);
  const above = command.parent === null ? [] : optionsOf(command.parent);
  const names = new Set(own.map(({ long }) => long));
  return [...own, ...above.filter(({ long }) => !names.has(long) && long !== '--version')];
}

function optionOf(command: Command, flag: string): Option | null {
  return optionsOf(command).find(({ long, short }) => long === flag || short === flag) ?? null;
}

const NONE: Completion = { kind: 'candidates', candidates: [] };

async function atCursor(place: Place, current: string, names: Names): Promise<Completion> {
  const { command, args, pending } = place;
  if (pending !== null) return valuesOf(pending, names);
  if (current.startsWith('-') && !place.isPlain) return flags(place);
  if (command.commands.length > 0)
    return args.length > 0 ? NONE : { kind: 'candidates', candidates: commandsOf(command) };
  const { registeredArguments: wanted } = command;
  const last = wanted.at(-1);
  const argument = wanted[args.length] ?? (last?.variadic === true ? last : undefined);
  return argument === undefined ? NONE : argumentValues(argument, place, names);
}

function commandsOf(command: Command): readonly Candidate[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== 'help')
    .map((one) => ({ value: one.name(), about: one.summary() }));
}

/** Options that may be given again, by name. */
const REPEATED: readonly string[] = ['tag', 'state'];

/** Those that were not given yet, but for those that may be given again. */
function flags({ command, given }: Place): Completion {
  const left = optionsOf(command).filter(
    (option) => REPEATED.includes(option.attributeName()) || !given.includes(option),
  );
  const candidates = left.flatMap(({ long, description }) =>
    long === undefined || long === null ? [] : [{ value: long, about: description }],
  );
  return { kind: 'candidates', candidates };
}

async function valuesOf(option: Option | null, names: Names): Promise<Completion> {
  if (option === null) return NONE;
  if (option.argChoices !== undefined) return choices(option.argChoices);
  switch (option.attributeName()) {
    case 'project':
      return { kind: 'folders' };
    case 'plan':
    case 'out':
      return { kind: 'files' };
    case 'env':
      return { kind: 'candidates', candidates: await names.environments() };
    case 'tag':
      return { kind: 'candidates', candidates: await names.tags() };
    default:
      return NONE;
  }
}

async function argumentValues(argument: Argument, { args }: Place, names: Names): Promise<Completion> {
  if (argument.argChoices !== undefined) return choices(argument.argChoices);
  switch (argument.name()) {
    case 'folder':
      return { kind: 'folders' };
    case 'mirror': {
      const found = await names.mirrors();
      return { kind: 'candidates', candidates: found.filter(({ value }) => !args.includes(value)) };
    }
    case 'batch':
      return { kind: 'candidates', candidates: await names.batches(args[0] ?? '') };
    default:
      return NONE;
  }
}

function choices(values: readonly string[]): Completion {
  return { kind: 'candidates', candidates: values.map((value) => ({ value, about: '' })) };
}

function matching(candidates: readonly Candidate[], start: string): readonly Candidate[] {
  return candidates.filter(({ value }) => value.startsWith(start));
}

/** Shells give words as they were typed. */
function unquoted(word: string): string {
  return word.replace(/^["']/, '').replace(/["']$/, '');
}
