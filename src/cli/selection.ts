/** Which mirrors a command is about: names, patterns with `*` and `?`, tags, or all of them where nothing is said. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { loadProject } from '../config/load.ts';
import { nearest } from '../config/nearest.ts';
import { TAG } from '../config/section-schemas.ts';
import { RetlError } from '../domain/errors.ts';
import { type Invocation, mirrorArgument } from './command.ts';
import type { Project } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { InvalidProject, Refusal } from './failures.ts';
import { mirrorNames, unknownMirror } from './known-mirrors.ts';
import { isPattern, matching, mirrorsArgument } from './mirror-glob.ts';

const HELP = 'names of mirrors, or patterns in quotes such as "vip-*"';

/** Gives a command its mirrors, as {@link selectMirrors} reads them. */
export function addSelection(command: Command): Command {
  return command
    .argument('[mirror...]', HELP, mirrorsArgument)
    .addOption(
      new Option('--tag <tag>', 'and those with this tag; may be given more than once').argParser(
        tagArgument,
      ),
    );
}

/** Parses one `--tag`, after those `before` it. */
function tagArgument(text: string, before: readonly string[] | undefined): readonly string[] {
  if (!TAG.test(text))
    throw new InvalidArgumentError('A tag has 1 to 63 lower-case letters, digits, `-` and `_`.');
  return [...(before ?? []), text];
}

type Asked = Pick<Invocation, 'project' | 'args' | 'options'>;

export interface Selection {
  /** Each once, in the order named; those of a pattern in order of their names. */
  readonly mirrors: readonly string[];
  /** Whether a pattern or a tag stood for some: whoever typed it may not have thought of each of them. */
  readonly isBroad: boolean;
}

/**
 * What the command line names; `null` where it names nothing.
 * @param also names that are known beside this folder's files (the journal's).
 * @throws RetlError `config.unknown-mirror`; InvalidProject where a tag cannot be looked up.
 */
export async function selectMirrors(
  { project, args, options }: Asked,
  also: readonly string[] = [],
): Promise<Selection | null> {
  const tags = Array.isArray(options.tag) ? options.tag.map(String) : [];
  if (args.length + tags.length === 0) return null;
  const known = [...new Set([...(await mirrorNames(project)), ...also])].sort();
  const named = args.flatMap((text) => namedBy(project, text, known));
  const tagged = tags.length === 0 ? [] : await taggedWith(project, tags);
  return {
    mirrors: [...new Set([...named, ...tagged])],
    isBroad: tags.length > 0 || args.some(isPattern),
  };
}

/**
 * The same for commands that must be told.
 * @throws Refusal `usage`; else as {@link selectMirrors}.
 */
export async function requiredMirrors(invocation: Asked, also: readonly string[] = []): Promise<Selection> {
  await requireNamed(invocation);
  return (await selectMirrors(invocation, also)) ?? { mirrors: [], isBroad: false };
}

/** Before anything else is looked at. @throws Refusal `usage` where the command line names no mirror. */
export async function requireNamed({ project, args, options }: Asked): Promise<void> {
  if (args.length > 0 || options.tag !== undefined) return;
  const known = await mirrorNames(project);
  throw new Refusal(
    EXIT.usage,
    'usage',
    'missing required argument \'mirror\': say which mirror, a pattern such as "vip-*", or --tag.',
    known.length === 0
      ? 'This folder has no mirrors; `--help` shows how the command is used.'
      : `There are: ${known.join(', ')}. \`--help\` shows how the command is used.`,
  );
}

/** The worker's configuration has the last word, and may be elsewhere: where none is known, a name is taken as it is. */
function namedBy(project: Project, text: string, known: readonly string[]): readonly string[] {
  if (isPattern(text)) {
    const found = matching(known, mirrorsArgument(text));
    if (found.length === 0) throw new RetlError('config.unknown-mirror', { pattern: text, known });
    return found;
  }
  const mirror = mirrorArgument(text);
  if (known.length === 0 || known.includes(mirror)) return [mirror];
  throw unknownMirror(project, mirror, known);
}

async function taggedWith({ dir }: Project, tags: readonly string[]): Promise<readonly string[]> {
  const loaded = await loadProject(dir, null, null);
  if (loaded.kind === 'invalid') throw new InvalidProject(loaded.problems);
  const table = loaded.settings.tags;
  const known = [...new Set(Object.values(table).flat())].sort();
  return tags.flatMap((tag) => {
    const found = Object.keys(table).filter((mirror) => table[mirror]?.includes(tag));
    if (found.length > 0) return found;
    const meant = nearest(tag, known);
    throw new Refusal(
      EXIT.usage,
      'unknown-tag',
      `No mirror has the tag ${tag}${meant === null ? '' : `; did you mean ${meant}?`}`,
      known.length === 0
        ? 'No mirror has any: write `tags: [nightly]` into its file.'
        : `Tags there are: ${known.join(', ')}.`,
    );
  });
}
