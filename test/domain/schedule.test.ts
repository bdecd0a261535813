import { expect, test } from 'vitest';
import { MIRROR_NAME, TASK_QUEUE } from '../../src/domain/messages.ts';
import {
  differencesOf,
  durationText,
  formText,
  MAINTENANCE_NAME,
  type ScheduleSettings,
  scheduleId,
  wantedForm,
} from '../../src/domain/schedule.ts';

const HOURLY: ScheduleSettings = {
  times: { kind: 'every', everyMs: 3_600_000 },
  jitterMs: 0,
  overlap: 'skip',
  catchUpMs: 3_600_000,
  pauseOnFailure: false,
};

test.each([
  [0, 'none'],
  [1500, '1500ms'],
  [90_000, '90s'],
  [900_000, '15m'],
  [3_600_000, '1h'],
  [172_800_000, '2d'],
])('%i ms are written %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test('the form of a schedule names all that it does', () => {
  expect(wantedForm('vip', HOURLY, 'queue')).toEqual({
    times: 'every 1h',
    time_zone: 'UTC',
    jitter: 'none',
    overlap: 'skip',
    catch_up: '1h',
    pause_on_failure: 'false',
    workflow: 'mirror as mirror/vip with {"mirror":"vip"}',
    task_queue: 'queue',
    limits: 'none',
  });
  expect(scheduleId('vip', 'queue')).toBe('mirror/vip');
});

test('maintenance has a schedule of its own, which no mirror and no other project of the namespace can have', () => {
  expect(MIRROR_NAME.test(MAINTENANCE_NAME)).toBe(false);
  expect(wantedForm(MAINTENANCE_NAME, HOURLY, 'queue').workflow).toBe(
    'maintenance as maintenance/queue with {}',
  );
  expect(scheduleId(MAINTENANCE_NAME, TASK_QUEUE)).toBe('maintenance');
  expect(scheduleId('maintenance', TASK_QUEUE)).toBe('mirror/maintenance');
});

test('two cron texts that mean the same times have one form, and another time has another', () => {
  const form = (cron: string) =>
    wantedForm('vip', { ...HOURLY, times: { kind: 'cron', cron, timeZone: 'Europe/Berlin' } }, 'q');
  expect(formText(form('0,30 6 * * MON-FRI'))).toBe(formText(form('*/30 6 * * 1-5')));
  expect(differencesOf(form('0 6 * * *'), form('0 7 * * *'))).toEqual([
    { part: 'times', found: 'cron 0 6 * * *', wanted: 'cron 0 7 * * *' },
  ]);
});
