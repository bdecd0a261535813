/** docs/metrics.md lists the metrics of the code and no other, and its rules of alerts are right. */

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CLOSINGS, METRICS, type MetricName } from '../../src/domain/metrics.ts';
import { OPEN_STATES } from '../../src/domain/run.ts';
import { PROJECT, problemsOf, SECRETS } from '../config/support.ts';
import { blocks, namesIn, page, rows, section } from './pages.ts';

const PAGE = page('docs/metrics.md');
const LISTED = section(PAGE, 'Which metrics are there?');
const [prometheus = '', otel = '', RULES = ''] = blocks(PAGE, 'yaml');

test('every metric stands there once, with type, unit, labels and meaning, and no other does', () => {
  const written = rows(LISTED).filter(([name = '']) => name.startsWith('`retl_'));
  const listed = Object.entries(METRICS).map(([name, { kind, unit, labels, help }]) => [
    `\`${name}\``,
    kind,
    unit,
    labels.map((label) => `\`${label}\``).join(', '),
    help,
  ]);
  expect([...written].sort()).toEqual([...listed].sort());
});

test('every state and every outcome of a run stands there', () => {
  expect(namesIn(section(PAGE, 'How do I see that a mirror stands still?'))).toEqual([...OPEN_STATES]);
  for (const closing of CLOSINGS) expect(LISTED).toContain(`\`${closing}\``);
});

test('both ways to turn metrics on are valid as they stand', async () => {
  const env = { ...SECRETS, OTEL_TOKEN: 't' };
  for (const block of [prometheus, otel])
    expect(await problemsOf({ 'retl.yaml': PROJECT + block }, { env })).toEqual([]);
});

test('rules and queries name metrics that there are, with labels that they have', () => {
  const used = [...PAGE.matchAll(/\b(retl_[a-z_]+?)(?:_count|_sum|_bucket)?(?:\{([^}]*)\}|\b)/g)];
  const known = (name: string): name is MetricName => Object.hasOwn(METRICS, name);
  expect(used.length).toBeGreaterThan(20);
  for (const [, name = '', selector = ''] of used) {
    if (!known(name)) throw new Error(`${name} is no metric`);
    const labels = [...selector.matchAll(/(\w+)=/g)].map((match) => match[1]);
    expect(METRICS[name].labels, name).toEqual(expect.arrayContaining(labels));
  }
});

const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

// Of the Debian package prometheus, among others.
test.skipIf(!hasPromtool)('Prometheus takes the rules, and they speak when they should', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'retl-rules-'));
  try {
    await writeFile(join(folder, 'rules.yml'), RULES);
    await writeFile(join(folder, 'tests.yml'), RULE_TESTS);
    const checked = spawnSync('promtool', ['check', 'rules', 'rules.yml'], { cwd: folder, encoding: 'utf8' });
    expect(checked).toMatchObject({ status: 0, stdout: expect.stringContaining('6 rules found') });
    const tested = spawnSync('promtool', ['test', 'rules', 'tests.yml'], { cwd: folder, encoding: 'utf8' });
    expect(tested.stdout + tested.stderr).toContain('SUCCESS');
    expect(tested.status).toBe(0);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

const TICKETS = ['RetlStandsStill', 'RetlRejections', 'RetlIndexBehind'];

const firing = (alert: string, at: string, of: string | null, summary: string | null): string => `
      - eval_time: ${at}
        alertname: ${alert}
        exp_alerts: ${
          summary === null
            ? '[]'
            : `[{ exp_labels: { ${of === null ? '' : `${alert === 'RetlIndexBehind' ? 'index' : 'mirror'}: ${of}, `}severity: ${TICKETS.includes(alert) ? 'ticket' : 'page'} }, exp_annotations: { summary: ${JSON.stringify(summary)} } }]`
        }`;

/** A mirror that is blocked for a while, is parked, stands still and has rejections, and indexes that do not follow; then a machine without a worker. */
const RULE_TESTS = `
rule_files: [rules.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - { series: 'retl_journal_up{instance="a"}', values: '1x600' }
      - { series: 'retl_open_run{mirror="a",state="blocked",instance="a"}', values: '0x4 1x600' }
      - { series: 'retl_open_run{mirror="b",state="parked",instance="a"}', values: '0x4 1x600' }
      - { series: 'retl_last_completed_age_seconds{mirror="c",instance="a"}', values: '0+60x600' }
      - { series: 'retl_members_total{mirror="d",outcome="rejected",instance="a"}', values: '0x4 3x600' }
      - { series: 'retl_index_lag_seconds{index="e",build="live",instance="a"}', values: '0+60x600' }
      - { series: 'retl_index_lag_seconds{index="e",build="building",instance="a"}', values: '0x600' }
      - { series: 'retl_index_up{index="e",instance="a"}', values: '1x600' }
      - { series: 'retl_index_up{index="f",instance="a"}', values: '0x600' }
    alert_rule_test:${[
      firing('RetlBlocked', '10m', 'a', null),
      firing('RetlBlocked', '16m', 'a', 'a is blocked: `retl status a` says what is needed'),
      firing('RetlParked', '4m', 'b', null),
      firing('RetlParked', '7m', 'b', 'b asks before it removes: `retl approve b` or `retl reject`'),
      firing('RetlStandsStill', '6h', 'c', null),
      firing('RetlStandsStill', '361m', 'c', 'no run of c has completed for 6h 1m 0s'),
      firing('RetlRejections', '4m', 'd', null),
      firing('RetlRejections', '10m', 'd', 'd: the destination rejects members: `retl rejections d`'),
      firing('RetlRejections', '2h', 'd', null),
      firing('RetlIndexBehind', '9m', 'e', null),
      firing('RetlIndexBehind', '15m', 'f', 'the index f does not follow the log: `retl index status f`'),
      firing('RetlNoWorker', '10m', null, null),
    ].join('')}
  - interval: 1m
    input_series:
      - { series: 'retl_members_held{mirror="a",instance="a"}', values: '1x600' }
    alert_rule_test:${firing(
      'RetlNoWorker',
      '6m',
      null,
      'no worker is there, or none reaches the journal: until then the other rules see nothing new',
    )}
`;
