import { expect, test } from 'vitest';
import type { ProjectSettings } from '../../src/domain/settings.ts';
import { MIRROR, PROJECT, problemsOf, settingsOf } from './support.ts';

const BARE = MIRROR.slice(0, MIRROR.indexOf('batch:'));

async function withDefaults(defaults: string, mirror = BARE): Promise<ProjectSettings> {
  return settingsOf({ 'retl.yaml': `${PROJECT}defaults: ${defaults}\n`, 'mirrors/vip.yaml': mirror });
}

test('a default stands where a mirror says nothing, and the product’s own where neither does', async () => {
  const { mirrors, tags, defaultKeys } = await withDefaults(
    '{ batch: { rows: 7 }, safety: { max_removals: 3, approval_deadline: 2h }, resume_max_age: 6h, tags: [eu] }',
  );
  expect(mirrors[0]).toMatchObject({
    batch: { rows: 7, bytes: 1_000_000, inFlight: 4 },
    safety: {
      maxRemovals: 3,
      maxRemovalShare: null,
      emptySnapshot: 'hold',
      approvalDeadlineMs: 7_200_000,
    },
    resumeMaxAgeMs: 21_600_000,
  });
  expect(tags).toEqual({ vip: ['eu'] });
  expect(defaultKeys).toEqual([
    'batch.rows',
    'safety.max_removals',
    'safety.approval_deadline',
    'resume_max_age',
    'tags',
  ]);
});

test('a mirror’s own settings go before the defaults, key by key', async () => {
  const own =
    'batch: { in_flight: 2 }\nsafety: { max_removals: 10% }\nresume_max_age: 1h\ntags: []\nschedule: { every: 1h, jitter: 5s }\n';
  const { mirrors, tags, schedules } = await withDefaults(
    '{ batch: { rows: 7, in_flight: 9 }, safety: { max_removals: { count: 3 }, empty_snapshot: allow }, resume_max_age: 6h, tags: eu, schedule: { jitter: 1m, overlap: buffer_one, pause_on_failure: true } }',
    BARE + own,
  );
  expect(mirrors[0]).toMatchObject({
    batch: { rows: 7, inFlight: 2 },
    // A limit is one setting: a share of one's own is not joined by the project's number.
    safety: { maxRemovalShare: 0.1, maxRemovals: null, emptySnapshot: 'allow' },
    resumeMaxAgeMs: 3_600_000,
  });
  expect(tags).toEqual({ vip: [] });
  expect(schedules.vip).toMatchObject({ jitterMs: 5_000, overlap: 'buffer_one', pauseOnFailure: true });
});

test('defaults of schedules make no schedule, and a time zone goes with a cron only', async () => {
  const zone = '{ schedule: { time_zone: Europe/Berlin } }';
  expect((await withDefaults(zone)).schedules).toEqual({});
  const times = async (schedule: string) =>
    (await withDefaults(zone, `${BARE}schedule: ${schedule}\n`)).schedules.vip?.times;
  expect(await times('{ every: 1h }')).toEqual({ kind: 'every', everyMs: 3_600_000 });
  expect(await times('{ cron: "@daily" }')).toMatchObject({ timeZone: 'Europe/Berlin' });
});

test('an error in a default is told once, in retl.yaml, however many mirrors there are', async () => {
  const files = {
    'retl.yaml': `${PROJECT}defaults: { batch: { row: 7 } }\n`,
    'mirrors/a.yaml': BARE,
    'mirrors/b.yaml': BARE,
  };
  expect(await problemsOf(files)).toEqual([
    'retl.yaml:12:22 defaults.batch.row: The key `row` is unknown. Did you mean `rows`? Known keys: rows, bytes, in_flight, poll_deadline.',
  ]);
});

test('a default that goes badly with a mirror’s own settings is told at the mirror', async () => {
  const files = {
    'retl.yaml': `${PROJECT}defaults: { schedule: { jitter: 1h } }\n`,
    'mirrors/vip.yaml': `${BARE}schedule: { every: 15m }\n`,
  };
  expect(await problemsOf(files)).toEqual([
    expect.stringMatching(/^mirrors\/vip\.yaml:15:11 schedule: The default jitter of retl\.yaml is longer/),
  ]);
});

test.each([
  ['batch: { rows: 0 }', 'defaults.batch.rows'],
  ['safety: { max_removals: 120% }', 'defaults.safety.max_removals'],
  ['safety: { empty_snapshots: hold }', 'Did you mean `empty_snapshot`?'],
  ['resume_max_age: 24', 'defaults.resume_max_age'],
  ['tags: [EU West]', 'defaults.tags[0]'],
  ['schedule: { every: 1h }', 'defaults.schedule.every'],
  ['schedule: { time_zone: Europe/Berlim }', 'Did you mean `Europe/Berlin`?'],
  ['schedule: { overlap: buffer }', 'defaults.schedule.overlap'],
  ['strategy: native-replace', 'defaults.strategy'],
  [`tags: ["\${env:TAG}"]`, 'Secret references are not resolved in `defaults`.'],
])('defaults are judged as a mirror’s own: %s', async (written, told) => {
  const problems = await problemsOf({ 'retl.yaml': `${PROJECT}defaults: { ${written} }\n` });
  expect(problems.join('\n')).toContain(told);
});
