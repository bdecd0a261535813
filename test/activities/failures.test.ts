/** Where retrying is decided: what each error becomes for Temporal, and what of it stays in the worker. */

import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { describe, expect, test } from 'vitest';
import { failing, toFailure } from '../../src/activities/failures.ts';
import { ERROR_CODES, type ErrorCode, RetlError } from '../../src/domain/errors.ts';
import { JournalError } from '../../src/journal/errors.ts';

const CODES = Object.keys(ERROR_CODES) as readonly ErrorCode[];
const SECRET = 'jane@example.org has password hunter2';

function asFailure(error: unknown): ApplicationFailure {
  const failure = toFailure(error);
  if (!(failure instanceof ApplicationFailure)) throw new Error('a cancellation');
  return failure;
}

test.each(CODES)('%s: retried where its recourse is to retry, final where somebody must mend it', (code) => {
  const failure = asFailure(new RetlError(code, { place: 'destination' }));
  const retried = ERROR_CODES[code].recourse === 'retry';
  expect(failure.type).toBe(retried ? 'unavailable' : 'invalid');
  expect(failure.nonRetryable).toBe(!retried);
  expect(failure.details).toEqual([{ code }]);
  expect(failure.message).toContain(ERROR_CODES[code].remedy);
});

test.each([
  ['unavailable', 'unavailable', false, 'journal.unavailable'],
  ['fenced', 'fenced', true, 'run.fenced'],
  ['rule', 'defect', true, 'journal.refused'],
  ['broken', 'defect', true, 'journal.refused'],
] as const)('rule 9: a journal that says %s is %s', (kind, type, nonRetryable, code) => {
  const failure = asFailure(new JournalError(kind, 'RM001', 'words of the journal'));
  expect(failure).toMatchObject({ type, nonRetryable, details: [{ code }] });
});

describe('cancellation', () => {
  test('that somebody asked for stays one, so that the workflow sees that its wish was heard', () => {
    const asked = new CancelledFailure('CANCELLED');
    expect(toFailure(asked)).toBe(asked);
  });

  test('of a worker that stops is tried again by another, and is no bug', () => {
    const failure = asFailure(new CancelledFailure('WORKER_SHUTDOWN'));
    expect(failure).toMatchObject({ type: 'unavailable', nonRetryable: false });
  });
});

describe('leaks: what nobody foresaw', () => {
  class VendorError extends Error {
    override readonly name = 'VendorError';
  }

  test.each([new VendorError(SECRET), SECRET, { detail: SECRET }, null, undefined])(
    'is a defect without the words of others (%#)',
    (thrown) => {
      const failure = asFailure(thrown);
      expect(failure).toMatchObject({ type: 'defect', nonRetryable: true });
      expect(JSON.stringify([failure.message, failure.details, failure.cause ?? null])).not.toContain('jane');
    },
  );

  test('the log has the frames, and not the message', async () => {
    const lines: unknown[] = [];
    const logger = { info: () => undefined, warn: (...line: unknown[]) => lines.push(line) };
    const thrown = failing(logger, async () => {
      throw new VendorError(SECRET);
    });
    await expect(thrown).rejects.toMatchObject({ type: 'defect' });
    expect(JSON.stringify(lines)).toContain('failures.test.ts');
    expect(JSON.stringify(lines)).not.toContain('jane');
  });

  test('what was foreseen is not logged as a bug', async () => {
    const lines: unknown[] = [];
    const logger = { info: () => undefined, warn: (...line: unknown[]) => lines.push(line) };
    const thrown = failing(logger, async () => {
      throw new RetlError('source.lost');
    });
    await expect(thrown).rejects.toMatchObject({ type: 'unavailable' });
    expect(lines).toEqual([]);
  });
});
