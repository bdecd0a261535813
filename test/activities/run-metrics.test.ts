/** What activities count, and the words that it is told in: few, and none of a provider's. */

import { beforeEach, expect, test } from 'vitest';
import { meteredWriter } from '../../src/activities/metered-writer.ts';
import { RunMetrics } from '../../src/activities/run-metrics.ts';
import type { BatchOutcome, BatchRequest, Writer } from '../../src/destinations/port.ts';
import { sha256FromHex } from '../../src/domain/ids.ts';
import { RecordingMeter } from '../support/recording-meter.ts';

let meter: RecordingMeter;
let metrics: RunMetrics;
beforeEach(() => {
  meter = new RecordingMeter();
  metrics = new RunMetrics(meter);
});

const counted = (name: string) =>
  Object.fromEntries(Object.entries(meter.series).filter(([series]) => series.startsWith(name)));

/** A request of so many members. */
function requestOf(members: number): BatchRequest {
  const id = sha256FromHex('0'.repeat(64));
  const operations = Array.from({ length: members }, () => ({ id, identity: '{}', payload: '{}' }));
  return { batchId: id, action: 'upsert', idempotencyKey: id, operations, body: '[{},é]' };
}

/** A writer that gives one answer to whatever it is asked. */
function answering(outcome: BatchOutcome): Writer {
  const answer = async () => outcome;
  const step = async () => ({ kind: 'accepted', receipt: {} }) as const;
  return {
    preflight: async () => [],
    checkEmpty: async () => ({ kind: 'empty' }),
    init: step,
    reconcileInit: step,
    attach: step,
    upsert: answer,
    remove: answer,
    poll: answer,
    finish: step,
    reconcileBatch: answer,
    reconcileFinish: step,
    abort: step,
    close: async () => undefined,
  };
}

test('a call is counted by what its answer is worth, and its bytes by how often they went', async () => {
  const outcomes = [{ kind: 'accepted' }, { kind: 'rejected', code: 'x', reason: 'canary' }] as const;
  const settled = answering({ kind: 'settled', outcomes, receipt: {} });
  const writer = meteredWriter(settled, { recovery: 'lookup' }, metrics, 'vip');
  await writer.upsert(requestOf(2));
  await writer.upsert(requestOf(3)); // an answer of two outcomes to three operations accepts nothing
  await writer.reconcileBatch(requestOf(2), null); // a look-up sends no member
  await writer.poll(requestOf(2), ['job'], {});
  await writer.init();
  const of = (action: string, call: string, outcome: string, code = '') =>
    `retl_requests_total{action="${action}",call="${call}",code="${code}",mirror="vip",outcome="${outcome}"}`;
  expect(counted('retl_requests_total')).toEqual({
    [of('upsert', 'send', 'settled')]: 1,
    [of('upsert', 'send', 'unknown', 'reply-does-not-match')]: 1,
    [of('upsert', 'reconcile', 'settled')]: 1,
    [of('upsert', 'poll', 'settled')]: 1,
    [of('init', 'send', 'accepted')]: 1,
  });
  expect(counted('retl_request_bytes')).toEqual({
    'retl_request_bytes_total{action="upsert",mirror="vip"}': 14,
  });
  expect(Object.keys(counted('retl_request_duration'))).toHaveLength(4);
});

test('the same bytes that go again to an idempotent destination are bytes again', async () => {
  const writer = meteredWriter(
    answering({ kind: 'accepted', receipt: {} }),
    { recovery: 'idempotent' },
    metrics,
    'vip',
  );
  await writer.reconcileBatch(requestOf(1), null);
  expect(counted('retl_request_bytes')).toEqual({
    'retl_request_bytes_total{action="upsert",mirror="vip"}': 7,
  });
});

test('an adapter that throws has answered nothing, and goes on throwing', async () => {
  const broken: Writer = {
    ...answering({ kind: 'accepted', receipt: {} }),
    upsert: () => Promise.reject(new Error('canary')),
  };
  const writer = meteredWriter(broken, { recovery: 'manual' }, metrics, 'vip');
  await expect(writer.upsert(requestOf(1))).rejects.toThrow('canary');
  expect(Object.keys(counted('retl_requests_total'))).toEqual([
    'retl_requests_total{action="upsert",call="send",code="adapter-threw",mirror="vip",outcome="unknown"}',
  ]);
});

test('a mirror’s members are counted from 0 on, by action and outcome', () => {
  metrics.begin('vip');
  metrics.members('vip', 'upsert', 7, 2);
  metrics.members('vip', 'remove', 0, 1);
  expect(counted('retl_members_total')).toEqual({
    'retl_members_total{action="upsert",mirror="vip",outcome="accepted"}': 7,
    'retl_members_total{action="upsert",mirror="vip",outcome="rejected"}': 2,
    'retl_members_total{action="remove",mirror="vip",outcome="accepted"}': 0,
    'retl_members_total{action="remove",mirror="vip",outcome="rejected"}': 1,
  });
});

test('a step is an interruption where its work is not done, and no value of its result but the code is told', () => {
  for (const result of [
    { kind: 'done', counts: {} },
    { kind: 'stopped' },
    undefined,
    { counts: {} },
    { kind: 'blocked', code: 'http-500', batch: 'canary' },
    { kind: 'held', code: 'max-removals', removals: 7 },
  ])
    metrics.ended('vip', 'additions', result);
  expect(counted('retl_')).toEqual({
    'retl_interruptions_total{code="http-500",kind="blocked",mirror="vip",step="additions"}': 1,
    'retl_interruptions_total{code="max-removals",kind="held",mirror="vip",step="additions"}': 1,
  });
});

test.each([
  ['http-403:INVALID_FIELD canary', 'http-403'],
  ['too-large:http-413', 'too-large'],
  ['23505', '23505'],
  ['Canary@example.com', 'other'],
  ['canary word', 'other'],
  ['a'.repeat(49), 'other'],
  ['-', 'other'],
])('the code %s is told as %s', (code, label) => {
  metrics.ended('vip', 'init', { kind: 'wait', code });
  expect(counted('retl_')).toEqual({
    [`retl_interruptions_total{code="${label}",kind="wait",mirror="vip",step="init"}`]: 1,
  });
});

test('codes without end are told as a hundred, and as others', () => {
  for (let i = 0; i < 150; i++) metrics.ended('vip', 'init', { kind: 'wait', code: `code-${i}` });
  metrics.ended('vip', 'init', { kind: 'wait', code: 'code-99' });
  expect(Object.keys(counted('retl_'))).toHaveLength(101);
  expect(meter.series['retl_interruptions_total{code="other",kind="wait",mirror="vip",step="init"}']).toBe(
    50,
  );
});

test('what maintenance takes away is counted by kind, and what is nothing is no series', () => {
  metrics.maintained({ generations: 3, receipts: 0 });
  metrics.maintained({ generations: 2, putOff: 1 });
  expect(counted('retl_maintenance_removed_total')).toEqual({
    'retl_maintenance_removed_total{what="generations"}': 5,
    'retl_maintenance_removed_total{what="putOff"}': 1,
  });
});
