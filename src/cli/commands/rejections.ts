/** `retl rejections [mirror]`: what destinations refused, member by member and as whole requests. */

import { type Command, InvalidArgumentError } from 'commander';
import { assertNever } from '../../domain/assert-never.ts';
import type { Refused, Since } from '../../journal/rejections.ts';
import { type Invocation, mirrorArgument, mirrorOf, newCommand } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { Refusal } from '../failures.ts';
import { requireKnown } from '../known-mirrors.ts';
import { limitArgument, limitOf } from '../limit-argument.ts';
import type { Output } from '../output.ts';
import { counted } from '../problems-view.ts';
import { RIGHTS_HELP, readAllowed } from '../read-rights.ts';
import { ago } from '../run-view.ts';
import { harmless } from '../value-text.ts';

export function rejectionsCommand(): Command {
  return newCommand(
    {
      name: 'rejections',
      summary: 'list what destinations refused',
      description:
        'Lists, newest first, the members that destinations refused one by one, and requests that they refused as a whole: ' +
        'run, batch, sequence number, code, the hash of the identity, which `retl explain` takes, and what a later run made ' +
        'of it. Shows values only ' +
        `with --values: identities and the provider’s own words. ${RIGHTS_HELP}`,
      examples: [
        ['retl rejections', 'of every mirror'],
        ['retl rejections vip-customers --run 42', 'of one run'],
        ['retl rejections vip-customers --values', 'with identities and the provider’s words'],
        [
          'retl rejections --limit 1000 --json',
          'as a JSON document; `next` is the --before of the next page',
        ],
      ],
    },
    rejections,
  )
    .argument('[mirror]', 'name of one mirror', mirrorArgument)
    .option('--run <number>', 'of one run', numberArgument)
    .option('--values', 'show identities and the provider’s own words')
    .option('--limit <number>', 'how many at most', limitArgument, 20)
    .option('--before <place>', 'go on where an earlier list ended', numberArgument);
}

const LARGEST = 2n ** 63n - 1n;

function numberArgument(text: string): bigint {
  const number = /^[0-9]{1,19}$/.test(text) ? BigInt(text) : 0n;
  if (number < 1n || number > LARGEST) throw new InvalidArgumentError('It must be a whole number from 1.');
  return number;
}

async function rejections(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = mirrorOf(invocation);
  if (mirror !== null) await requireKnown(project, mirror);
  const page = await readAllowed(invocation, async (journal) => {
    const { listRejections, mirrorOfRun } = await import('../../journal/rejections.ts');
    if (typeof options.run === 'bigint')
      requireRun(options.run, await mirrorOfRun(journal, options.run), mirror);
    return listRejections(journal, {
      mirror,
      run: typeof options.run === 'bigint' ? options.run : null,
      before: typeof options.before === 'bigint' ? options.before : null,
      limit: limitOf(options),
      values: options.values === true,
    });
  });
  output.document(page);
  if (page.rejections.length === 0) output.line('The journal has no rejections here.');
  const now = Date.now();
  for (const refused of page.rejections) show(output, refused, now);
  if (page.next !== null) output.line(`More: --before ${page.next}`);
  return EXIT.ok;
}

/** An empty list of a run that is not there would pass for a run without rejections. @throws Refusal `no-such-run` */
function requireRun(run: bigint, found: string | null, mirror: string | null): void {
  if (found !== null && (mirror === null || mirror === found)) return;
  const ofMirror = mirror === null ? '' : ` ${mirror}`;
  throw new Refusal(
    EXIT.usage,
    'no-such-run',
    found === null ? `The journal knows no run ${run}.` : `Run ${run} is of ${found}, not of ${mirror}.`,
    `\`retl runs${ofMirror}\` lists the last ones.`,
  );
}

function show(output: Output, refused: Refused, now: number): void {
  const { kind, mirror, runId, code, batch, values } = refused;
  const what = kind === 'operation' ? `${refused.action} of a member` : requestWords(refused);
  output.line(
    `${output.style('bold', mirror)} run ${runId}, ${ago(refused.recordedAt, now)}: ${what}, ${output.style('red', code)}` +
      (refused.tolerated ? ', tolerated' : ''),
  );
  if (kind === 'operation')
    output.line(`  member ${refused.identityHash ?? 'not there any more'}, sequence ${refused.sequence}`);
  output.line(`  batch  ${batch}`);
  if (refused.since !== null) output.line(`  since  ${sinceWords(refused.since)}`);
  else if (kind === 'operation') output.line('  since  no later run has tried it again');
  if (values === null) return;
  if (values.identity !== null) output.line(`  identity ${harmless(values.identity)}`);
  if (values.words !== null) output.line(`  words  ${harmless(values.words)}`);
}

function sinceWords({ runId, became }: Since): string {
  switch (became) {
    case 'accepted':
      return `sent again in run ${runId}, and accepted`;
    case 'rejected':
      return `sent again in run ${runId}, and rejected again`;
    case 'pending':
      return `to be sent again in run ${runId}, which is open`;
    case 'settled':
      return `nothing to send in run ${runId}: what is held is what the source gives`;
    default:
      return assertNever(became);
  }
}

function requestWords({ action, members }: Refused): string {
  if (members === null) return `the ${action === 'init' ? 'opening of the session' : 'finish'}`;
  return `a whole ${action} request of ${counted(members, 'member')}`;
}
