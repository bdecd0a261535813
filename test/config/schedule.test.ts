import { expect, test } from 'vitest';
import { settingsText } from '../../src/config/settings-text.ts';
import { MIRROR, PROJECT, problemsOf, settingsOf } from './support.ts';

const files = (schedule: string) => ({
  'retl.yaml': PROJECT,
  'mirrors/vip.yaml': `${MIRROR}schedule: ${schedule}\n`,
});

async function scheduleOf(schedule: string) {
  return (await settingsOf(files(schedule))).schedules.vip;
}

test('a schedule has the documented defaults', async () => {
  const hourly = {
    times: { kind: 'every', everyMs: 900_000 },
    jitterMs: 0,
    overlap: 'skip',
    catchUpMs: 3_600_000,
    pauseOnFailure: false,
  };
  expect(await scheduleOf('{ every: 15m }')).toEqual(hourly);
  expect(await scheduleOf('{ every: 15m, overlap: skip, catch_up: 1h, pause_on_failure: false }')).toEqual(
    hourly,
  );
  expect(await scheduleOf('{ cron: "@daily" }')).toMatchObject({
    times: { kind: 'cron', cron: '@daily', timeZone: 'UTC' },
  });
});

test('everything that a schedule can say is read', async () => {
  const written =
    '{ cron: "0 6 * * 1-5", time_zone: Europe/Berlin, jitter: 30s, overlap: buffer_one, catch_up: 2d, pause_on_failure: true }';
  expect(await scheduleOf(written)).toEqual({
    times: { kind: 'cron', cron: '0 6 * * 1-5', timeZone: 'Europe/Berlin' },
    jitterMs: 30_000,
    overlap: 'buffer_one',
    catchUpMs: 172_800_000,
    pauseOnFailure: true,
  });
});

test.each(['UTC', 'America/Argentina/Buenos_Aires', 'Europe/Kyiv', 'US/Pacific', 'Etc/GMT+5'])(
  'time_zone: %s',
  async (zone) => {
    expect(await scheduleOf(`{ cron: "@daily", time_zone: "${zone}" }`)).toMatchObject({
      times: { timeZone: zone },
    });
  },
);

test('a mirror without a schedule has none', async () => {
  const settings = await settingsOf({ 'retl.yaml': PROJECT, 'mirrors/vip.yaml': MIRROR });
  expect(settings.schedules).toEqual({});
});

test('when a mirror runs is no part of a run’s revision', async () => {
  const texts = await Promise.all(
    ['{ every: 15m }', '{ every: 1h }'].map(async (schedule) =>
      (await settingsOf(files(schedule))).mirrors.map(settingsText),
    ),
  );
  expect(texts[0]).toEqual(texts[1]);
});

test.each([
  ['nothing', ''],
  ['a bare duration', '15m'],
  ['neither every nor cron', '{ jitter: 5s }'],
  ['both every and cron', '{ every: 1h, cron: "@daily" }'],
  ['a number without a unit', '{ every: 15 }'],
  ['less than a second', '{ every: 500ms }'],
  ['half a second more', '{ every: 1500ms }'],
  ['an interval of zero', '{ every: 0s }'],
  ['a cron of six fields', '{ cron: "0 0 6 * * *" }'],
  ['an hour that is none', '{ cron: "0 25 * * *" }'],
  ['a day of the month and of the week', '{ cron: "0 6 1 * 1" }'],
  ['a day that never comes', '{ cron: "0 6 31 2 *" }'],
  ['a time zone with every', '{ every: 1h, time_zone: Europe/Berlin }'],
  ['a mistyped time zone', '{ cron: "@daily", time_zone: Europe/Berlim }'],
  ['a time zone in lower case', '{ cron: "@daily", time_zone: europe/berlin }'],
  ['an old time zone in lower case', '{ cron: "@daily", time_zone: us/pacific }'],
  ['an offset as a time zone', '{ cron: "@daily", time_zone: "+02:00" }'],
  ['a jitter longer than the interval', '{ every: 10s, jitter: 1m }'],
  ['a catch-up window below what Temporal keeps', '{ every: 1h, catch_up: 5s }'],
  ['a policy that lets two run at once', '{ every: 1h, overlap: allow_all }'],
  ['a word for true', '{ every: 1h, pause_on_failure: sometimes }'],
  ['an unknown key', '{ every: 1h, timezone: UTC }'],
  ['several errors at once', '{ every: 1.5h, jitter: x, overlap: all, time_zone: Mars, catch_up: 1s }'],
])('schedule: %s', async (_name, schedule) => {
  const problems = await problemsOf(files(schedule));
  expect(problems).not.toEqual([]);
  expect(problems).toMatchSnapshot();
});
