/** A plan in words. */

import { type GuardCode, isMoved, movedWords } from '../domain/messages.ts';
import type {
  FieldChange,
  OpenRunPlan,
  Plan,
  PlanCounts,
  PlanGuard,
  PlanIdentities,
  SnapshotPlan,
} from '../domain/plan.ts';
import type { Output } from './output.ts';
import { limitWords } from './parked-view.ts';
import { counted } from './problems-view.ts';
import { whole } from './progress-view.ts';
import { harmless } from './value-text.ts';

export function showPlan(output: Output, plan: Plan): void {
  output.line(`${output.style('bold', plan.mirror)}  ${plan.strategy}`);
  for (const line of standingLines(plan)) output.line(`  ${line}`);
  if (plan.openRun !== null) for (const line of openRunLines(plan, plan.openRun)) output.line(`  ${line}`);
  if (plan.snapshot !== null) showSnapshot(output, plan, plan.snapshot);
  if (plan.identities !== null) showIdentities(output, plan, plan.identities);
}

function standingLines({ target }: Plan): readonly string[] {
  switch (target) {
    case 'never-run':
      return ['It has never run: nothing is known to be held, and every member is new.'];
    case 'new-target':
      return [
        'Its target is new: nothing is known to be held there, and every member is new.',
        'What an earlier target holds stays as it is; no run of this mirror looks at it any more.',
      ];
    default:
      return [];
  }
}

const GIVEN_UP: { readonly [Why in NonNullable<OpenRunPlan['givenUp']>]: string } = {
  unsealed: 'It has sealed no snapshot',
  'guard-rejected': 'Its removals were rejected',
  'guard-expired': 'Nobody has answered in time what the guard asked',
  'too-old': 'Its snapshot is too old to go on with',
};

function openRunLines(plan: Plan, open: OpenRunPlan): readonly string[] {
  const { runId, phase, holder, released, reason, unresolvedBatches } = open;
  const why = [released, reason].filter((part) => part !== null).join(', ');
  const state =
    released === null
      ? `is open, in ${phase}, held by ${holder}: while that is running, another start is refused`
      : `is open, in ${phase}, and was let go (${why})`;
  const lines = [`Run ${runId} ${state}.`];
  if (unresolvedBatches > 0)
    lines.push(
      `${counted(unresolvedBatches, 'request')} of it must be resolved first: \`retl status ${plan.mirror}\`.`,
    );
  if (plan.next === 'fresh-snapshot')
    return [
      ...lines,
      `${GIVEN_UP[open.givenUp ?? 'unsealed']}: the next run closes it and reads the source anew, as follows.`,
    ];
  return [
    ...lines,
    'It goes on first, with the snapshot that it has sealed; the source is not read for it:',
    ...resumedLines(open),
    'After it, the same start takes a fresh snapshot, which is planned when this command is asked again then.',
  ];
}

function resumedLines({ plan }: OpenRunPlan): readonly string[] {
  if (plan === null) return [];
  if (plan.counts === null)
    return [`  sealed    ${counted(plan.members, 'member')}, not compared with what is held yet`];
  const lines = [
    `  sealed    ${counted(plan.members, 'member')}`,
    ...changeLines(plan.counts).map((l) => `  ${l}`),
  ];
  return plan.guard === null ? lines : [...lines, `  ${guardLine(plan.guard)}`];
}

function showSnapshot(output: Output, plan: Plan, { counts, guard, digests }: SnapshotPlan): void {
  const { sourceRows, excluded, collapsed, members } = counts;
  const parts = [
    counted(members, 'member'),
    `${whole(excluded)} excluded on purpose`,
    ...(collapsed > 0 ? [`${whole(collapsed)} given twice, alike`] : []),
  ];
  output.line(`  source    ${counted(sourceRows, 'row')}: ${parts.join(', ')}`);
  for (const line of changeLines(counts)) output.line(`  ${line}`);
  if (plan.strategy === 'native-replace' && counts.unchanged > 0)
    output.line('            unchanged members are uploaded too: the target is replaced as a whole');
  const color = guard.kind === 'holds' ? 'yellow' : 'green';
  output.line(`  ${output.style(color, guardLine(guard))}`);
  if (guard.kind === 'passes') return;
  const unknown = guard.code === 'unknown-baseline';
  const moved = isMoved(guard.code) ? 'the new way, and of ' : '';
  const what = unknown ? 'the replacement' : `${moved}${counted(counts.removed, 'removal')}`;
  output.line(`  asks      approval of ${what}`);
  output.line(`  shown     ${digests.shown}`);
  output.line(`            the run parks with nothing sent, and waits for \`retl approve ${plan.mirror}\`;`);
  if (!unknown && moved === '')
    output.line(`            or beforehand: retl run ${plan.mirror} --approve-up-to ${counts.removed}`);
}

type Changes = Pick<PlanCounts, 'held' | 'added' | 'changed' | 'removed' | 'unchanged' | 'refreshed'>;

function changeLines({
  held,
  added,
  changed,
  removed,
  unchanged,
  refreshed = 0,
}: Changes): readonly string[] {
  const share = held === 0 ? '' : `, ${percent(removed, held)} of what is held`;
  return [
    `held      ${whole(held)} before the run`,
    `add       ${whole(added)}`,
    `change    ${whole(changed)}`,
    `remove    ${whole(removed)}${share}`,
    `unchanged ${whole(unchanged)}${refreshed === 0 ? '' : `, ${whole(refreshed)} of them sent again: accepted too long ago`}`,
  ];
}

/** Never rounded to all or to none. */
function percent(part: number, all: number): string {
  if (part === 0) return '0%';
  if (part === all) return '100%';
  const tenths = Math.min(999, Math.max(1, Math.round((part / all) * 1000)));
  return `${tenths / 10}%`;
}

function guardLine(guard: PlanGuard): string {
  if (guard.kind === 'holds') return `guard     would hold it: ${heldBecause(guard.code)}`;
  return guard.unless === undefined
    ? 'guard     lets it pass'
    : 'guard     lets it pass, unless the target holds anything: then the run asks before it replaces that';
}

function heldBecause(code: GuardCode): string {
  if (code === 'unknown-baseline') return 'nobody has vouched for what the target holds';
  if (isMoved(code)) return `the run would ${movedWords(code)}`;
  return code === 'empty-snapshot'
    ? `the snapshot is empty (${limitWords(code)})`
    : `more removals than ${limitWords(code)} allows`;
}

function showIdentities(output: Output, { snapshot, openRun }: Plan, shown: PlanIdentities): void {
  // A run that has begun to send has less left than it had planned: how much, the list alone knows.
  const counts = openRun?.phase === 'guard' ? openRun.plan?.counts : snapshot?.counts;
  const head = (word: string, listed: number, all: number | undefined): void => {
    if (listed === 0) return;
    const first = `, the first ${whole(listed)}`;
    const more = all === undefined && listed === shown.limit ? first : '';
    const of = all !== undefined && all > listed ? `${first} of ${whole(all)}` : more;
    output.line(output.style('bold', `${word}${of}`));
  };
  if (openRun?.plan && openRun.phase !== 'guard' && snapshot === null)
    output.line(`What run ${openRun.runId} has left to do:`);
  head('to be added', shown.added.length, counts?.added);
  for (const { identity, payload } of shown.added) output.line(`  + ${json(identity)}  ${json(payload)}`);
  head('to be changed', shown.changed.length, counts?.changed);
  for (const { identity, fields } of shown.changed) {
    output.line(`  ~ ${json(identity)}${fields.length === 0 ? '  the same values, in another form' : ''}`);
    for (const field of fields) output.line(`      ${changeWords(field)}`);
  }
  head('to be removed', shown.removed.length, counts?.removed);
  for (const { identity } of shown.removed) output.line(`  - ${json(identity)}`);
}

function changeWords(change: FieldChange): string {
  const from = 'from' in change ? json(change.from) : '(absent)';
  const to = 'to' in change ? json(change.to) : '(absent)';
  return `${harmless(change.field)}: ${from} -> ${to}`;
}

function json(value: unknown): string {
  return harmless(JSON.stringify(value));
}
