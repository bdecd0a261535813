/** `retl resolve <mirror> <batch>`: tells a blocked run what became of a request, with a reason that is kept. */

import { type Command, InvalidArgumentError } from 'commander';
import { assertNever } from '../../domain/assert-never.ts';
import { type BatchId, sha256 } from '../../domain/ids.ts';
import type { BatchView, Unresolvable, Verdict } from '../../journal/resolve.ts';
import { batchLines } from '../batch-view.ts';
import { type Invocation, mirrorArgument, newCommand, requiredMirror } from '../command.ts';
import { confirm, YES_HELP } from '../confirm.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { misused, Refusal } from '../failures.ts';
import { holderOf, withJournal } from '../journal.ts';
import { requireKnown } from '../known-mirrors.ts';
import type { Output } from '../output.ts';
import { counted } from '../problems-view.ts';
import { span, whole } from '../progress-view.ts';
import { reasonArgument } from '../reason-argument.ts';
import { withTemporal } from '../temporal.ts';
import { asWorker } from '../worker-rights.ts';

export function resolveCommand(): Command {
  const id = `sha256:${'0'.repeat(64)}`;
  return newCommand(
    {
      name: 'resolve',
      summary: 'tell a blocked run what became of a request',
      description:
        'Decides a batch whose outcome is unknown, after you have looked at the destination: the journal records the ' +
        'verdict with your reason, for good, and the run goes on. `--accepted` takes its members for held; with ' +
        '`--not-applied` they are sent again, which is refused while the request may still arrive. ' +
        '`retl status <mirror>` names the batches.',
      examples: [
        [`retl resolve vip-customers ${id} --accepted --because seen-in-the-CRM`, 'it did arrive'],
        [
          `retl resolve vip-customers ${id} --not-applied --because CRM-log-has-no-such-request`,
          'it did not',
        ],
      ],
    },
    (invocation) => asWorker('say what became of a batch', () => resolve(invocation)),
  )
    .argument('<mirror>', 'name of the mirror', mirrorArgument)
    .argument('<batch>', 'id of the batch, as `retl status <mirror>` shows it', batchArgument)
    .option('--accepted', 'the destination has applied the whole request')
    .option('--not-applied', 'the destination has applied nothing of it, and never will')
    .option('--because <reason>', 'how you know; kept in the journal', reasonArgument)
    .option('--yes', YES_HELP);
}

/** @returns the id in its full form. */
export function batchArgument(text: string): BatchId {
  const lower = text.toLowerCase();
  try {
    return sha256(lower.startsWith('sha256:') ? lower : `sha256:${lower}`);
  } catch {
    throw new InvalidArgumentError('A batch’s id is `sha256:` and 64 hex digits.');
  }
}

async function resolve(invocation: Invocation): Promise<ExitCode> {
  const { output, project } = invocation;
  const mirror = requiredMirror(invocation);
  const batch = batchArgument(invocation.args[1] ?? '');
  const { verdict, because } = wordOf(invocation);
  await requireKnown(project, mirror);
  return withJournal(project, async (journal) => {
    const { findBatch, refusalOf, resolveBatch, unresolvedBatches } = await import(
      '../../journal/resolve.ts'
    );
    const found = await findBatch(journal, batch);
    const refusal = refusalOf(found, verdict);
    if (found !== null) show(output, found, mirror);
    if (refusal !== null || found === null) throw refused(mirror, refusal ?? { kind: 'no-such-batch' });
    await confirm(invocation, `${consequence(found, verdict)} This cannot be taken back. Go on`);
    const result = await resolveBatch(journal, batch, verdict, because);
    if (result.kind !== 'resolved') throw refused(mirror, result);
    const left = await unresolvedBatches(journal, found.runId);
    output.line(`Recorded as ${verdict}.`);
    const isTold = await tell(invocation, mirror);
    output.document({
      mirror,
      batch,
      verdict,
      resumed: isTold,
      unresolved: left.map((other) => other.batch),
    });
    if (left.length > 0)
      output.line(
        `Still unresolved in this run: ${counted(left.length, 'batch', 'batches')}; \`retl status ${mirror}\` names them.`,
      );
    return EXIT.ok;
  });
}

/** The verdict and its reason. */
function wordOf({ options }: Invocation): { readonly verdict: Verdict; readonly because: string } {
  const { accepted, notApplied, because } = options;
  if ((accepted === true) === (notApplied === true))
    throw misused('resolve', 'Say what became of the request: either --accepted or --not-applied.');
  if (typeof because !== 'string') throw misused('resolve', 'A reason is needed: --because "how you know".');
  return { verdict: accepted === true ? 'accepted' : 'not-applied', because };
}

function show(output: Output, batch: BatchView, mirror: string): void {
  if (batch.mirror !== mirror)
    throw misused('resolve', `The batch belongs to another mirror, ${batch.mirror}; nothing was changed.`);
  output.line(`batch ${batch.batch} of run ${batch.runId}`);
  for (const line of batchLines(batch, Date.now())) output.line(`  ${line}`);
}

function consequence({ action, members }: BatchView, verdict: Verdict): string {
  const what =
    members === null ? `the ${action}` : `${whole(members)} ${action === 'remove' ? 'removals' : 'members'}`;
  if (verdict === 'not-applied') return `The run sends ${what} again.`;
  return `The journal takes ${what} for accepted.`;
}

function refused(mirror: string, why: Unresolvable): Refusal {
  const say = (code: string, message: string, remedy: string, exit: ExitCode = EXIT.refused) =>
    new Refusal(exit, code, `${message} Nothing was changed.`, remedy);
  const status = `\`retl status ${mirror}\` names what is unresolved.`;
  switch (why.kind) {
    case 'no-such-batch':
      return say(why.kind, 'The journal knows no batch of this id.', status, EXIT.usage);
    case 'settled':
      return say(why.kind, `The batch is ${why.state} already: an outcome does not change.`, status);
    case 'not-unknown':
      return say(
        why.kind,
        `The batch is ${why.state}: its outcome is not unknown.`,
        `A worker finds out what it can first; then ${status}`,
      );
    case 'run-closed':
      return say(why.kind, `The run of this batch is closed (${why.closing}).`, status);
    case 'too-early':
      return say(
        why.kind,
        `The request may still reach the destination for ${span(why.leftMs)}: until then its absence proves nothing.`,
        'Look at the destination again after that, and then resolve it.',
      );
    case 'under-way':
      return say(
        why.kind,
        'Another request of this run is under way.',
        `Try again when the run waits, at the latest in ${span(why.leftMs)}; ${status}`,
      );
    default:
      return assertNever(why);
  }
}

/** The verdict stands whether or not the run hears of it at once. */
async function tell({ output, project }: Invocation, mirror: string): Promise<boolean> {
  const { signalMirror } = await import('../../client/control.ts');
  try {
    return await withTemporal(project, async (temporal) => {
      const workflowId = await holderOf(project, mirror, temporal.namespace);
      const { kind } = await signalMirror(temporal, mirror, 'look', workflowId);
      output.line(
        kind === 'sent'
          ? 'The run was told to look again.'
          : `No run of ${mirror} is under way; \`retl run ${mirror}\` takes this one up.`,
      );
      return kind === 'sent';
    });
  } catch {
    output.note(`Temporal cannot be reached: tell the run later, with \`retl poll ${mirror}\`.`);
    return false;
  }
}
