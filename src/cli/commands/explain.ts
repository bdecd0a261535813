/** `retl explain <mirror> [identity]`: everything the journal knows about one member. */

import { type Command, InvalidArgumentError } from 'commander';
import { loadMirror } from '../../config/load.ts';
import type { Sha256, TargetId } from '../../domain/ids.ts';
import type { MirrorSettings } from '../../domain/settings.ts';
import type { Explanation, KeyTrace } from '../../journal/explain.ts';
import { type Invocation, mirrorArgument, newCommand, requiredMirror } from '../command.ts';
import type { Project } from '../environment.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { InvalidProject, Refusal } from '../failures.ts';
import { identitiesOf, isIdentityHash, sourceKeyOf } from '../identity.ts';
import type { Journal } from '../journal.ts';
import { requireKnown } from '../known-mirrors.ts';
import { limitArgument, limitOf } from '../limit-argument.ts';
import { maxLagOf, maxLagOption } from '../max-lag.ts';
import { passedWords, recall, showPast } from '../member-past.ts';
import { showExplanation } from '../member-view.ts';
import type { Output } from '../output.ts';
import { RIGHTS_HELP, readAllowed } from '../read-rights.ts';

export function explainCommand(): Command {
  return newCommand(
    {
      name: 'explain',
      summary: 'show everything the journal knows about one member',
      description:
        'Shows whether a member is held, since when and why, and what each run did about it: added, changed, removed, refused, ' +
        'left out or unchanged, with batches, codes, log positions and times. Name it as the source does: the mirror’s own ' +
        `rules (normalise, hash) are applied. Shows hashes; values only with --values. ${RIGHTS_HELP}`,
      examples: [
        ['retl explain vip-customers ann@example.com', 'the identity has one field'],
        [`retl explain vip-customers '{"email":"ann@example.com"}'`, 'as JSON, by field'],
        ['retl explain vip-customers --key 42', 'by the source’s key: rows left out on purpose, too'],
        ['retl explain vip-customers ann@example.com --values', 'with payloads and the provider’s words'],
      ],
    },
    explain,
  )
    .argument('<mirror>', 'name of the mirror', mirrorArgument)
    .argument(
      '[identity]',
      'a bare value, a JSON object by field, or the sha256 that `retl rejections` shows',
    )
    .option('--key <key>', 'source key of a row; of several columns, a JSON array of their texts')
    .option('--raw', 'take the identity literally: it is normalised and hashed already')
    .option('--values', 'show payloads, identity, receipts and reasons')
    .option('--limit <number>', 'runs to show at most', limitArgument, 20)
    .option('--after <place>', 'go on where an earlier answer ended', placeArgument)
    .addOption(maxLagOption());
}

function placeArgument(text: string): string {
  if (!/^[1-9][0-9]{0,9}-(held|absent)$/.test(text))
    throw new InvalidArgumentError('It is the `next` of an earlier answer.');
  return text;
}

async function explain(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = requiredMirror(invocation);
  const typed = invocation.args[1];
  const key = typeof options.key === 'string' ? keyIn(options.key) : null;
  if (typed === undefined && key === null)
    throw usage('Neither an identity nor a --key is given.', '`retl explain --help` shows how it is used.');
  await requireKnown(project, mirror);
  const hashes = typed === undefined ? [] : await hashesOf(project, mirror, typed, options.raw === true);
  return readAllowed(invocation, async (journal) => {
    const { targetOf } = await import('../../journal/explain.ts');
    const target = await targetOf(journal, mirror);
    if (target === null) return neverRun(output, mirror);
    const rows = key === null ? null : await traceKey(journal, target, key, limitOf(options));
    const wanted = hashes.length > 0 ? hashes : membersOf(rows ?? []);
    const members = await explainAll(invocation, journal, target, wanted);
    const { pasts, passed } = await recalled(invocation, journal, { mirror, target, members });
    const documents = members.map((member, n) => ({ ...member, past: pasts[n] ?? null }));
    output.document({ mirror, target, key: rows, members: documents, passedOver: passed });
    if (rows !== null) showKey(output, rows);
    for (const { past, ...member } of documents) {
      showExplanation(output, member, Date.now());
      if (past !== null) showPast(output, past, Date.now());
    }
    if (passed.length > 0) output.note(output.style('dim', passedWords(passed)));
    return EXIT.ok;
  });
}

function neverRun(output: Output, mirror: string): ExitCode {
  output.document({ mirror, target: null, key: null, members: [], passedOver: [] });
  output.line(`${mirror}: never run`);
  return EXIT.ok;
}

/** Of what the typed value can mean, what the journal knows; where it knows none, the first. */
async function explainAll(
  { options }: Invocation,
  journal: Journal,
  target: TargetId,
  hashes: readonly Sha256[],
): Promise<readonly Explanation[]> {
  const { explainMember } = await import('../../journal/explain.ts');
  const asked = {
    limit: limitOf(options),
    after: typeof options.after === 'string' ? options.after : null,
    values: options.values === true,
  };
  const all: Explanation[] = [];
  for (const hash of hashes) all.push(await explainMember(journal, target, hash, asked));
  const known = all.filter(({ verdict, held, runs }) =>
    verdict === null ? held !== null || runs.some((run) => run.kind === 'run') : isKnown(verdict),
  );
  return known.length > 0 ? known : all.slice(0, 1);
}

/** What the log says of them; on pages after the first it has been said. */
function recalled(
  { project, options }: Invocation,
  journal: Journal,
  asked: Omit<Parameters<typeof recall>[2], 'limit' | 'maxLag'>,
): ReturnType<typeof recall> {
  const members = typeof options.after === 'string' ? [] : asked.members;
  return recall(project, journal, { ...asked, members, limit: limitOf(options), maxLag: maxLagOf(options) });
}

function isKnown(verdict: Explanation['verdict']): boolean {
  return verdict !== 'unknown' && verdict !== 'left-out';
}

async function hashesOf(
  project: Project,
  mirror: string,
  typed: string,
  raw: boolean,
): Promise<readonly Sha256[]> {
  const settings = isIdentityHash(typed) ? null : await settingsOf(project, mirror);
  const found = identitiesOf(typed, settings, raw);
  if (found.kind === 'refused') throw usage(found.message, found.remedy);
  return found.hashes;
}

/** The mirror as it is configured now; `null` where it is configured elsewhere. */
async function settingsOf(project: Project, mirror: string): Promise<MirrorSettings | null> {
  const loaded = await loadMirror(project.dir, mirror, null, null);
  if (loaded.kind === 'invalid') throw new InvalidProject(loaded.problems);
  return loaded.settings.mirrors[0] ?? null;
}

function keyIn(typed: string): string {
  const key = sourceKeyOf(typed);
  if (key === null)
    throw usage(
      'The key is no text and no JSON array of texts.',
      'Write the texts of its columns in their order: \'["eu","42"]\'.',
    );
  return key;
}

async function traceKey(journal: Journal, target: TargetId, key: string, limit: number) {
  const { explainKey } = await import('../../journal/explain.ts');
  return explainKey(journal, target, key, limit);
}

/** The member of the newest snapshot in which the row gives one. */
function membersOf(rows: readonly KeyTrace[]): readonly Sha256[] {
  const newest = rows.find((row) => row.identityHash !== null)?.identityHash;
  return newest === undefined || newest === null ? [] : [newest];
}

const GIVEN: { readonly [G in NonNullable<KeyTrace['given']>]: string } = {
  excluded: 'left out on purpose: its `when` does not hold, or its mapping gives no member',
  member: 'gives a member',
  absent: 'not in the snapshot: the query did not return it',
};

function showKey(output: Output, rows: readonly KeyTrace[]): void {
  output.line(output.style('bold', 'row of this key'));
  for (const { runId, given, snapshot } of rows) {
    const gone = snapshot === 'none' ? 'the run sealed no snapshot' : 'the snapshot’s rows are gone';
    output.line(`  run ${runId}: ${given === null ? gone : GIVEN[given]}`);
  }
}

function usage(message: string, remedy: string): Refusal {
  return new Refusal(EXIT.usage, 'usage', message, remedy);
}
