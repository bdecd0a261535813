import { expect, test } from 'vitest';
import { stateOfHolder } from '../../src/activities/admit.ts';

const holder = { cluster: 'c1', firstRunId: 'run-1' };
const own = (status: number) => ({ kind: 'found', status, firstRunId: 'run-1' }) as const;

test.each([
  ['running', 1, 'open'],
  ['completed', 2, 'closed'],
  ['failed', 3, 'closed'],
  ['cancelled', 4, 'closed'],
  ['terminated', 5, 'closed'],
  ['continued as new', 6, 'open'],
  ['timed out', 7, 'closed'],
  ['paused', 8, 'open'],
  ['of a status that this version does not know', 99, 'open'],
  ['of no status', 0, 'open'],
])('two-writers: a holder that is %s (%i) is %s', (_, status, state) => {
  expect(stateOfHolder(holder, own(status))).toBe(state);
});

test('another chain of executions under the same id: the holder has ended', () => {
  expect(stateOfHolder(holder, { kind: 'found', status: 1, firstRunId: 'run-2' })).toBe('closed');
  expect(stateOfHolder(holder, { kind: 'not-found' })).toBe('closed');
});

test('absence proves nothing where the cluster does not tell its id', () => {
  const elsewhere = { ...holder, cluster: '' };
  expect(stateOfHolder(elsewhere, { kind: 'not-found' })).toBe('unknown');
  expect(stateOfHolder(elsewhere, { kind: 'found', status: 1, firstRunId: 'run-2' })).toBe('unknown');
  expect(stateOfHolder(elsewhere, own(5))).toBe('closed');
});
