/** `retl plan <mirror>…`: what a run of each would do. */

import type { Command } from 'commander';
import { assertNever } from '../../domain/assert-never.ts';
import type { Plan, PlanGuard } from '../../domain/plan.ts';
import { type Invocation, newCommand } from '../command.ts';
import { EXIT, type ExitCode, worstExit } from '../exit-codes.ts';
import { type Failure, failureOf, Refusal } from '../failures.ts';
import { showPlan } from '../plan-view.ts';
import { askPlan } from '../planner.ts';
import { whole } from '../progress-view.ts';
import { savePlan } from '../saved-plan.ts';
import { addSelection, requiredMirrors } from '../selection.ts';
import { SHOWN, shownArgument, shownOf } from '../shown-argument.ts';
import { isInterrupted } from '../worker-answers.ts';

export function planCommand(): Command {
  const command = newCommand(
    {
      name: 'plan',
      summary: 'show what a run would do',
      description:
        'Reads the source once, as a run would, and compares it with what the journal knows to be held: how many members would ' +
        'be added, changed and removed, and whether the guard would hold the run. No destination is called, nothing is ' +
        'written, and nothing waits for it. Whatever would make the run fail, fails here the same way. Needs a ' +
        'role with retl_reader or the worker’s; --identities shows values and needs retl_reader.',
      examples: [
        ['retl plan vip-customers', 'counts, and what the guard would say'],
        ['retl plan "vip-*"', 'of each of these, one after the other; the worst exit code counts'],
        ['retl plan vip-customers --identities', 'the first 20 members of each kind, with changed fields'],
        [
          'retl plan vip-customers --detailed-exitcode',
          '0: nothing to do, 10: changes, 4: the guard would hold',
        ],
        ['retl plan vip-customers --out vip.plan', 'save it, then: retl run vip-customers --plan vip.plan'],
      ],
    },
    plan,
  );
  return addSelection(command)
    .option(
      '--identities [number]',
      `show members by their values, the first ${SHOWN} of each kind`,
      shownArgument,
    )
    .option(
      '--detailed-exitcode',
      'exit with 10 where a run would change something, 4 where it would be held',
    )
    .option('--out <file>', 'save the plan of one mirror: counts and hashes, no values');
}

/** One that fails keeps no other from being planned. */
async function plan(invocation: Invocation): Promise<ExitCode> {
  const { output, options } = invocation;
  const { mirrors } = await requiredMirrors(invocation);
  if (typeof options.out === 'string' && mirrors.length > 1)
    throw new Refusal(
      EXIT.usage,
      'usage',
      'A saved plan is of one mirror.',
      'Name that mirror alone with --out.',
    );
  const made: Made[] = [];
  for (const [index, mirror] of mirrors.entries()) {
    if (index > 0) output.line();
    made.push(await planOne(invocation, mirror, mirrors.length === 1));
  }
  output.document({ plans: made.map(({ document }) => document) });
  return worstExit(made.map(({ exit }) => exit));
}

/** What became of one mirror: its plan, or `mirror` and `error`. */
interface Made {
  readonly document: Plan | { readonly mirror: string; readonly error: Failure['document'] };
  readonly exit: ExitCode;
}

/** @throws where `isOnly` or interrupted, as every command does; of several mirrors, one that fails is told of and passed over. */
async function planOne(invocation: Invocation, mirror: string, isOnly: boolean): Promise<Made> {
  const { output, project, options } = invocation;
  try {
    const found = await askPlan(project, mirror, {
      identities: shownOf(options.identities),
      onProgress: (rows) => output.redraw([`${mirror}: ${whole(rows)} rows read`]),
    });
    output.redraw([]);
    if (typeof options.out === 'string') await savePlan(found, options.out, new Date());
    showPlan(output, found);
    if (typeof options.out === 'string')
      output.note(`saved: retl run ${mirror} --plan ${options.out} sends this, or nothing`);
    return { document: found, exit: options.detailedExitcode === true ? exitOf(found) : EXIT.ok };
  } catch (error) {
    output.redraw([]);
    if (isOnly || isInterrupted(error)) throw error;
    const failure = failureOf(error);
    output.line(`${output.style('bold', mirror)}  ${output.style('red', 'cannot be planned')}`);
    failure.write(output);
    return { document: { mirror, error: failure.document }, exit: failure.exit };
  }
}

/** An open run that goes on first is a change, whatever it still has to do: it is not finished. */
function exitOf({ next, openRun, snapshot }: Plan): ExitCode {
  switch (next) {
    case 'open-run':
      return isHeld(openRun?.plan?.guard) ? EXIT.guardHeld : EXIT.changes;
    case 'fresh-snapshot': {
      if (isHeld(snapshot?.guard)) return EXIT.guardHeld;
      const { added = 0, changed = 0, removed = 0, refreshed = 0 } = snapshot?.counts ?? {};
      return added + changed + removed + refreshed > 0 ? EXIT.changes : EXIT.ok;
    }
    default:
      return assertNever(next);
  }
}

function isHeld(guard: PlanGuard | null | undefined): boolean {
  return guard?.kind === 'holds';
}
