import { expect, test } from 'vitest';
import { RetlError } from '../../src/domain/errors.ts';
import { RowFailures } from '../../src/planning/row-failures.ts';

const nullKey = (n: number) => new RetlError('data.null-key', { column: 'id', keyHash: `sha256:${n}` });

function thrownBy(failures: RowFailures): RetlError | null {
  try {
    failures.throwIfAny();
  } catch (error) {
    if (error instanceof RetlError) return error;
    throw error;
  }
  return null;
}

test('without a failure nothing is thrown', () => {
  const failures = new RowFailures();
  expect(failures.any).toBe(false);
  expect(thrownBy(failures)).toBeNull();
});

test('the first rule that is broken is named, with how many rows break it and the first ten key hashes', () => {
  const failures = new RowFailures();
  for (let n = 1; n <= 12; n++) failures.add(nullKey(n));
  failures.add(new RetlError('data.invalid-value', { rule: 'not-finite', keyHash: 'sha256:x' }));
  const error = thrownBy(failures);
  expect(error?.code).toBe('data.null-key');
  const keyHashes = Array.from({ length: 10 }, (_, i) => `sha256:${i + 1}`);
  expect(error?.details).toEqual({ column: 'id', count: 12, otherFailures: 1, keyHashes });
});

test('what is not about a row comes out at once, unchanged', () => {
  const lost = new RetlError('source.lost', {});
  expect(() => new RowFailures().add(lost)).toThrow(lost);
  const bug = new TypeError('bug');
  expect(() => new RowFailures().add(bug)).toThrow(bug);
});
