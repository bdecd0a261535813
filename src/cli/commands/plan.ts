/** `retl plan <mirror>`: what a run would do. */

import { type Command, InvalidArgumentError } from 'commander';
import { assertNever } from '../../domain/assert-never.ts';
import type { Plan, PlanGuard } from '../../domain/plan.ts';
import { type Invocation, mirrorArgument, newCommand, requiredMirror } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { requireKnown } from '../known-mirrors.ts';
import { showPlan } from '../plan-view.ts';
import { askPlan } from '../planner.ts';
import { whole } from '../progress-view.ts';
import { savePlan } from '../saved-plan.ts';

const SHOWN = 20;
const MOST_SHOWN = 100_000;

export function planCommand(): Command {
  return newCommand(
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
        ['retl plan vip-customers --identities', 'the first 20 members of each kind, with changed fields'],
        [
          'retl plan vip-customers --detailed-exitcode',
          '0: nothing to do, 10: changes, 4: the guard would hold',
        ],
        ['retl plan vip-customers --out vip.plan', 'save it, then: retl run vip-customers --plan vip.plan'],
      ],
    },
    plan,
  )
    .argument('<mirror>', 'name of the mirror', mirrorArgument)
    .option(
      '--identities [number]',
      `show members by their values, the first ${SHOWN} of each kind`,
      shownArgument,
    )
    .option(
      '--detailed-exitcode',
      'exit with 10 where a run would change something, 4 where it would be held',
    )
    .option('--out <file>', 'save the plan: counts and hashes, no values');
}

function shownArgument(text: string): number {
  const number = Number(text);
  if (!/^[1-9]\d*$/.test(text) || number > MOST_SHOWN)
    throw new InvalidArgumentError(`It must be a whole number from 1 to ${MOST_SHOWN}.`);
  return number;
}

async function plan(invocation: Invocation): Promise<ExitCode> {
  const { output, project, options } = invocation;
  const mirror = requiredMirror(invocation);
  await requireKnown(project, mirror);
  const found = await askPlan(project, mirror, {
    identities: shownOf(options.identities),
    onProgress: (rows) => output.redraw([`${mirror}: ${whole(rows)} rows read`]),
  });
  output.redraw([]);
  if (typeof options.out === 'string') await savePlan(found, options.out, new Date());
  output.document(found);
  showPlan(output, found);
  if (typeof options.out === 'string')
    output.note(`saved: retl run ${mirror} --plan ${options.out} sends this, or nothing`);
  return options.detailedExitcode === true ? exitOf(found) : EXIT.ok;
}

function shownOf(option: unknown): number | null {
  if (option === true) return SHOWN;
  return typeof option === 'number' ? option : null;
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
