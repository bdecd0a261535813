/** `retl find <text>`: who is in which mirrors. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { loadMirror } from '../../config/load.ts';
import type { AskOrder, Source, ToldMember } from '../../domain/ask-messages.ts';
import { ERROR_CODES } from '../../domain/errors.ts';
import { searchedText } from '../../domain/identity-text.ts';
import type { Sha256 } from '../../domain/ids.ts';
import type { MirrorSettings } from '../../domain/settings.ts';
import { type AskAnswer, askIndexes, type PassedOver, sourceWords } from '../ask-work.ts';
import { type Invocation, newCommand } from '../command.ts';
import type { Project } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { identitiesOf, isIdentityHash } from '../identity.ts';
import { knownElsewhere, mirrorNames } from '../known-mirrors.ts';
import { limitArgument, limitOf } from '../limit-argument.ts';
import { maxLagOf, maxLagOption } from '../max-lag.ts';
import { mirrorsArgument } from '../mirror-glob.ts';
import type { Output } from '../output.ts';
import { counted } from '../problems-view.ts';
import { readAllowed, requireValues } from '../read-rights.ts';
import { ago } from '../run-view.ts';
import { selectMirrors } from '../selection.ts';
import { valueWords } from '../value-text.ts';

export function findCommand(): Command {
  return newCommand(
    {
      name: 'find',
      summary: 'show who is in which mirrors, by a text of the identity',
      description:
        'Shows every member that is held and whose identity has the text as one of its values, in whichever mirror: since when, ' +
        'and by which run. Case does not matter. Mirrors that normalise or hash are asked by their own rules too. Answers from an ' +
        'index of the kind membership-search that is not far behind the log, else from the journal, and says which it was. ' +
        'Connects by `journal.reader_url` where retl.yaml names it, and needs the role retl_reader.',
      examples: [
        ['retl find ann@example.com', 'a whole value of the identity'],
        ['retl find 42 --mirror "crm-*"', 'in some mirrors'],
        ['retl find @example.com --part', 'any part of a value; takes longer'],
        [`retl find '{"email":"ann@example.com"}'`, 'a whole identity, by field'],
      ],
    },
    find,
  )
    .argument('<text>', 'a value of the identity, the identity as a JSON object, or its sha256')
    .addOption(
      new Option(
        '--mirror <name>',
        'in this mirror, or those of a pattern; may be given more than once',
      ).argParser((text: string, before: readonly string[] | undefined) => [
        ...(before ?? []),
        mirrorsArgument(text),
      ]),
    )
    .option('--part', 'find the text anywhere in a value')
    .option('--raw', 'take the text literally: no mirror’s rules are applied')
    .option('--limit <number>', 'members to show at most', limitArgument, 20)
    .addOption(maxLagOption());
}

async function find(invocation: Invocation): Promise<ExitCode> {
  const { output, project, args, options } = invocation;
  const [typed = ''] = args;
  const match = options.part === true ? 'part' : 'value';
  if (searchedText(typed, match) === null)
    throw new InvalidArgumentError('The text is empty, or one that no identity can have.');
  const mirrors = await selectedMirrors(invocation);
  const answers = await readAllowed(invocation, async (journal) => {
    await requireValues(journal, 'Have it granted');
    const isWhole = isIdentityHash(typed) || typed.trimStart().startsWith('{');
    const order: AskOrder = {
      kind: 'find',
      hashes: match === 'part' ? [] : await hashesOf(invocation, typed, isWhole, mirrors),
      text: isWhole && match === 'value' ? null : typed,
      match,
      mirrors,
      limit: limitOf(options),
      maxLag: maxLagOf(options),
    };
    return askIndexes(project, order);
  });
  tell(output, answers);
  return EXIT.ok;
}

/** `null`: all that the journal knows. */
async function selectedMirrors({ project, options }: Invocation): Promise<readonly string[] | null> {
  const args = Array.isArray(options.mirror) ? options.mirror.map(String) : [];
  if (args.length === 0) return null;
  const selection = await selectMirrors({ project, args, options: {} }, await knownElsewhere(project, args));
  return selection?.mirrors ?? null;
}

/** What the text can mean literally, and by the rules of each mirror. */
async function hashesOf(
  { output, project, options }: Invocation,
  typed: string,
  isWhole: boolean,
  mirrors: readonly string[] | null,
): Promise<readonly Sha256[]> {
  const raw = options.raw === true;
  const literal = identitiesOf(typed, null, raw);
  const hashes = new Set(literal.kind === 'candidates' ? literal.hashes : []);
  // A bare text that is taken literally is found as a value.
  const asked = isIdentityHash(typed) || (raw && !isWhole) ? [] : await mirrorNames(project);
  for (const mirror of asked.filter((name) => mirrors === null || mirrors.includes(name))) {
    const settings = await settingsOf(project, mirror);
    if (settings === null) output.note(`The file of ${mirror} has errors: its rules are not applied.`);
    const found = settings === null ? null : identitiesOf(typed, settings, raw);
    if (found?.kind === 'candidates') for (const hash of found.hashes) hashes.add(hash);
  }
  if (isWhole && hashes.size === 0 && literal.kind === 'refused')
    throw new Refusal(EXIT.usage, 'usage', literal.message, literal.remedy);
  return [...hashes];
}

/** A mistake in the file of one mirror must not keep anybody from being found in the others. */
async function settingsOf({ dir }: Project, mirror: string): Promise<MirrorSettings | null> {
  const loaded = await loadMirror(dir, mirror, null, null);
  return loaded.kind === 'invalid' ? null : (loaded.settings.mirrors[0] ?? null);
}

function tell(output: Output, answers: readonly AskAnswer[]): void {
  const members = answers.flatMap((one) => (one.kind === 'member' ? [one.member] : []));
  const passed = answers.filter((one): one is PassedOver => one.kind === 'passed-over');
  const end = answers.find((one) => one.kind === 'found');
  if (end === undefined) throw new Error('the process has not said who it asked');
  output.document({
    ...(end.source satisfies Source),
    passedOver: passed.map(({ index, code }) => ({ index, code })),
    members,
    more: end.more,
  });
  show(output, members, end.more);
  output.note(output.style('dim', sourceWords(end.source, passed)));
}

function show(output: Output, members: readonly ToldMember[], more: boolean): void {
  if (members.length === 0) {
    output.line('Nobody that is held has it.');
    return;
  }
  const now = Date.now();
  const rows = members.map(({ mirror, identity, sinceAt, runId, position }) => [
    mirror,
    valueWords(identity),
    `${sinceAt}, ${ago(new Date(sinceAt), now)}`,
    runId,
    position,
  ]);
  output.table([['MIRROR', 'IDENTITY', 'HELD SINCE', 'LAST RUN', 'POSITION'], ...rows]);
  const lost = members.filter(({ identity }) => identity === null).length;
  if (lost > 0)
    output.note(
      `The journal has lost the identity of ${counted(lost, 'member')}. ${ERROR_CODES['log.broken'].remedy}`,
    );
  if (more)
    output.note(`These are the first ${counted(members.length, 'member')}; --limit shows more of them.`);
}
