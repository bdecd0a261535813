import { Command } from 'commander';
import { expect, test } from 'vitest';
import { schedulesCommand } from '../../src/cli/commands/schedules.ts';
import { isPattern, matching, mirrorsArgument } from '../../src/cli/mirror-glob.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { type Listed, listedRow, listedState, noteLines } from '../../src/cli/schedule-view.ts';
import { changeFor } from '../../src/client/schedule-change.ts';
import type { Schedule } from '../../src/client/schedules.ts';
import { type ScheduleSettings, wantedForm } from '../../src/domain/schedule.ts';

const HOURLY: ScheduleSettings = {
  times: { kind: 'every', everyMs: 3_600_000 },
  jitterMs: 0,
  overlap: 'skip',
  catchUpMs: 3_600_000,
  pauseOnFailure: false,
};
const FORM = wantedForm('vip', HOURLY, 'q');
const OPTIONS = { taskQueue: 'q', takeOver: false };
const OURS = { owner: 'ours', form: FORM, asApplied: true } as const;

test('a schedule that is not there is created, and one that is as it should be is left alone', () => {
  expect(changeFor('vip', HOURLY, null, OPTIONS)).toEqual({ kind: 'create', mirror: 'vip' });
  expect(changeFor('vip', HOURLY, OURS, OPTIONS)).toEqual({ kind: 'unchanged', mirror: 'vip' });
});

test('a difference is told part by part, with whether it came from the file or from Temporal', () => {
  const daily = { ...HOURLY, times: { kind: 'every', everyMs: 86_400_000 } } as const;
  const differences = [{ part: 'times', found: 'every 1h', wanted: 'every 1d' }];
  expect(changeFor('vip', daily, OURS, OPTIONS)).toMatchObject({
    kind: 'update',
    differences,
    edited: false,
  });
  expect(changeFor('vip', daily, { ...OURS, asApplied: false }, OPTIONS)).toMatchObject({ edited: true });
  expect(changeFor('vip', HOURLY, { ...OURS, asApplied: false }, OPTIONS)).toMatchObject({
    kind: 'update',
    differences: [],
  });
});

test.each(['unmanaged', 'other-queue'] as const)(
  'a schedule that is %s is a conflict, unless it is to be taken over',
  (owner) => {
    const theirs = { owner, form: { ...FORM, task_queue: 'theirs' }, asApplied: false };
    expect(changeFor('vip', HOURLY, theirs, OPTIONS)).toEqual({
      kind: 'conflict',
      mirror: 'vip',
      owner,
      taskQueue: 'theirs',
    });
    expect(changeFor('vip', HOURLY, theirs, { ...OPTIONS, takeOver: true })).toMatchObject({
      kind: 'update',
      edited: false,
    });
  },
);

test.each([
  ['vip-*', ['vip-a', 'vip-bb']],
  ['*', ['old', 'vip-a', 'vip-bb']],
  ['vip-?', ['vip-a']],
  ['vip', []],
  ['*a*', ['vip-a']],
])('the pattern %s stands for %j', (text, names) => {
  expect(matching(['old', 'vip-a', 'vip-bb'], text)).toEqual(names);
});

test('a pattern holds nothing that a name could not', () => {
  expect(isPattern('vip')).toBe(false);
  expect(mirrorsArgument('mirrors/vip.yaml')).toBe('vip');
  for (const text of ['VIP*', 'a.*', '[ab]*', '$*', '(*'])
    expect(() => mirrorsArgument(text)).toThrow('pattern');
});

const SCHEDULE: Schedule = {
  mirror: 'vip',
  ...OURS,
  paused: false,
  note: 'a note',
  nextStarts: [new Date(1_000_000 + 60_000)],
  lastStart: { workflowId: 'mirror/vip-1', runId: 'r', at: new Date(1_000_000 - 600_000) },
  running: [],
  counts: { started: 1200, skipped: 3, missed: 2 },
};
const LISTED: Listed = {
  mirror: 'vip',
  schedule: SCHEDULE,
  lastOutcome: 'completed',
  change: { kind: 'unchanged', mirror: 'vip' },
};

test('skipped-runs: a row tells next start, last outcome, and how many were skipped and missed', () => {
  expect(listedRow(LISTED, 1_000_000)).toEqual([
    'vip',
    'every 1h',
    'active',
    'in 60s',
    'completed',
    '10m ago',
    '1,200',
    '3',
    '2',
  ]);
  expect(noteLines(LISTED)).toEqual([]);
});

test('a paused schedule has no next start, and says why it is paused', () => {
  const paused: Listed = { ...LISTED, schedule: { ...SCHEDULE, paused: true } };
  expect(listedRow(paused, 1_000_000).slice(2, 4)).toEqual(['paused', 'none']);
  expect(noteLines(paused)).toEqual(['vip: a note']);
});

test.each([
  [{ change: 'unknown' }, 'active'],
  [{ change: { kind: 'orphan', mirror: 'vip' } }, 'left over'],
  [{ change: { kind: 'conflict', mirror: 'vip', owner: 'unmanaged', taskQueue: 'q' } }, 'foreign'],
  [{ change: { kind: 'update', mirror: 'vip', differences: [], edited: true } }, 'active, differs'],
  [{ schedule: null, change: { kind: 'create', mirror: 'vip' } }, 'not applied'],
] as const)('%j is shown as %s', (change, state) => {
  expect(listedState({ ...LISTED, ...change })).toBe(state);
});

const BELOW = schedulesCommand().commands.map((command) => command.name());

test.each(BELOW)('the help of schedules %s teaches by examples that are parsed as they stand', (name) => {
  const group = buildProgram(true).commands.find((command) => command.name() === 'schedules');
  const command = group?.commands.find((candidate) => candidate.name() === name) ?? new Command();
  let help = '';
  command.configureOutput({
    writeOut: (part) => {
      help += part;
    },
  });
  command.outputHelp();
  const lines = [...help.matchAll(/^ {2}\$ retl (.*?)\s+# .+$/gm)].map((match) => match[1] ?? '');
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    const program = buildProgram(true);
    for (const one of program.commands) for (const below of one.commands) below.action(() => undefined);
    const args = line.split(' ').map((part) => part.replaceAll('"', ''));
    expect(() => program.parse(args, { from: 'user' })).not.toThrow();
  }
});
