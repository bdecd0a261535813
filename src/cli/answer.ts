/**
 * `retl approve` and `retl reject`: the answer of a person to a parked run (design.md section 4, Guard). It is bound to what
 * was shown, so that nobody approves a set that nobody has looked at.
 */

import { type Command, InvalidArgumentError } from 'commander';
import { sha256 } from '../domain/ids.ts';
import type { UpdateName } from '../domain/messages.ts';
import { askedByJournal, decideByJournal } from './answer-journal.ts';
import { askedByTemporal, decideByTemporal } from './answer-temporal.ts';
import {
  type Answered,
  type Asked,
  answeredWords,
  answerRefusal,
  refusedWords,
  showAsked,
  VERDICTS,
} from './answered.ts';
import { type CommandText, type Invocation, newCommand } from './command.ts';
import { confirm, YES_HELP } from './confirm.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { isOutOfReach, Refusal } from './failures.ts';
import { type Journal, withJournal } from './journal.ts';
import { knownElsewhere } from './known-mirrors.ts';
import { reasonArgument, reasonOf } from './reason-argument.ts';
import { addSelection, requiredMirrors, type Selection } from './selection.ts';
import { withTemporal } from './temporal.ts';
import { answerNotAllowed, asApprover } from './worker-rights.ts';

export function answerCommand(answer: UpdateName, text: Omit<CommandText, 'name'>): Command {
  const command = newCommand({ name: answer, ...text }, (invocation) => respond(invocation, answer));
  return addSelection(command)
    .option('--because <reason>', 'why; kept in the journal', reasonArgument)
    .option(
      '--shown <digest>',
      'answer to what was shown under this digest, and to nothing else',
      shownArgument,
    )
    .option('--yes', YES_HELP);
}

function shownArgument(text: string): string {
  try {
    return sha256(text.startsWith('sha256:') ? text : `sha256:${text}`);
  } catch {
    throw new InvalidArgumentError('It is `sha256:` and 64 hex digits, as `retl status` shows it.');
  }
}

async function respond(invocation: Invocation, answer: UpdateName): Promise<ExitCode> {
  const selection = await requiredMirrors(
    invocation,
    await knownElsewhere(invocation.project, invocation.args),
  );
  requireLooked(invocation, answer, selection);
  try {
    return await withJournal(invocation.project, (journal) =>
      asApprover(async () => {
        // Before anybody looks and says yes in vain.
        const { mayAnswer } = await import('../journal/approvals.ts');
        if (!(await mayAnswer(journal))) throw answerNotAllowed();
        return answerAll(invocation, answer, selection, byJournal(invocation, answer, journal));
      }),
    );
  } catch (error) {
    if (!isOutOfReach(error)) throw error;
  }
  return withoutJournal(invocation, answer, selection);
}

/** Of a pattern or several mirrors, somebody must have looked at each before anything is deleted. */
function requireLooked({ options }: Invocation, answer: UpdateName, { isBroad, mirrors }: Selection): void {
  if (options.shown !== undefined && (isBroad || mirrors.length > 1))
    throw usage('--shown is of one run: name one mirror.');
  if (answer === 'approve' && isBroad && options.yes === true)
    throw usage(
      'What a pattern or a tag stands for is approved one by one: name the mirrors, or leave --yes out.',
    );
}

function usage(message: string): Refusal {
  return new Refusal(EXIT.usage, 'usage', message, '`--help` of the command shows how it is used.');
}

interface Way {
  readonly via: 'journal' | 'temporal';
  ask(mirror: string): Promise<Asked | null>;
  decide(asked: Asked): Promise<Answered>;
}

function byJournal({ project, options }: Invocation, answer: UpdateName, journal: Journal): Way {
  return {
    via: 'journal',
    ask: (mirror) => askedByJournal(journal, mirror),
    decide: (asked) => decideByJournal(journal, project, asked, answer, reasonOf(options)),
  };
}

async function withoutJournal(
  invocation: Invocation,
  answer: UpdateName,
  selection: Selection,
): Promise<ExitCode> {
  if (reasonOf(invocation.options) !== null)
    throw new Refusal(
      EXIT.failure,
      'because-needs-journal',
      'The journal cannot be reached from here, and a reason never goes through Temporal. Nothing was changed.',
      'Leave --because out, or answer from a machine that reaches the journal.',
    );
  invocation.output.note('The journal cannot be reached from here; the run is asked through Temporal.');
  return withTemporal(invocation.project, (temporal) =>
    answerAll(invocation, answer, selection, {
      via: 'temporal',
      ask: (mirror) => askedByTemporal(temporal, mirror),
      decide: (asked) => decideByTemporal(temporal, asked, answer),
    }),
  );
}

/** Those of a pattern that are not parked are passed over; a mirror that is named must be. */
async function answerAll(
  invocation: Invocation,
  answer: UpdateName,
  { mirrors, isBroad }: Selection,
  way: Way,
): Promise<ExitCode> {
  const asked: Asked[] = [];
  for (const mirror of mirrors) {
    const found = await way.ask(mirror);
    if (found !== null) asked.push(found);
    else if (!isBroad) throw answerRefusal({ kind: 'refused', mirror, why: 'not-parked' });
  }
  if (asked.length === 0)
    throw new Refusal(
      EXIT.refused,
      'not-parked',
      'None of these mirrors has a parked run.',
      '`retl status` shows them.',
    );
  const results: object[] = [];
  const done: Answered[] = [];
  for (const one of asked) {
    const answered = await answerOne(invocation, answer, one, way);
    done.push(answered);
    const { runId, parked } = one;
    results.push({ ...answered, runId, shown: parked.shown, removals: parked.removals, held: parked.held });
  }
  return report(invocation, answer, way, { done, results });
}

async function answerOne(
  invocation: Invocation,
  answer: UpdateName,
  asked: Asked,
  way: Way,
): Promise<Answered> {
  const { output, options } = invocation;
  const { mirror, parked } = asked;
  showAsked(output, asked);
  if (typeof options.shown === 'string' && options.shown !== parked.shown)
    return { kind: 'refused', mirror, why: 'stale' };
  const what =
    answer === 'approve'
      ? `Remove these ${parked.removals.toLocaleString('en-US')} members from the destination of ${mirror}`
      : `Reject the run of ${mirror}; nobody is removed, and the next run reads the source anew`;
  await confirm(invocation, what, answer === 'approve' ? 'yes' : 'y');
  return way.decide(asked);
}

function report(
  { output }: Invocation,
  answer: UpdateName,
  { via }: Way,
  { done, results }: { readonly done: readonly Answered[]; readonly results: readonly object[] },
): ExitCode {
  const [only] = done;
  if (done.length === 1 && only?.kind === 'refused') throw answerRefusal(only);
  output.document({ verdict: VERDICTS[answer], via, mirrors: results });
  for (const one of done)
    output.line(one.kind === 'recorded' ? answeredWords(answer, one) : refusedWords(one));
  return done.every(({ kind }) => kind === 'recorded') ? EXIT.ok : EXIT.refused;
}
