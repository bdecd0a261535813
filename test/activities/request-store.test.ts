import { expect, test } from 'vitest';
import { RequestStore } from '../../src/activities/request-store.ts';

test('rule 2: a request reads what was committed and what it wrote itself; no other reads that before its receipt', async () => {
  const store = new RequestStore(new Map([['cursor', '1']]));
  const first = await store.collect(async () => {
    store.set('cursor', '2');
    store.delete('gone');
    return store.get('cursor');
  });
  expect(first.value).toBe('2');
  expect(await store.collect(async () => store.get('cursor'))).toEqual({ value: '1', writes: new Map() });
  store.committed(first.writes);
  expect(store.get('cursor')).toBe('2');
});

test('what the journal could not keep whole is refused when it is set, and not when an outcome is recorded', async () => {
  const store = new RequestStore(new Map());
  const long = `😀${'x'.repeat(400_000)}`;
  const { writes } = await store.collect(async () => {
    store.set('k', long);
    expect(() => store.set('k', 'x'.repeat(2_000_000))).toThrow('longer than');
    expect(() => store.set('k', 'a\0b')).toThrow('no text');
    expect(() => store.set('k', '\ud83d')).toThrow('no text');
    expect(() => store.set('€'.repeat(513), '')).toThrow('a key of the store');
    expect(() => store.delete('\0')).toThrow('no text');
  });
  expect(writes).toEqual(new Map([['k', long]]));
  expect(() => store.set('k', 'v')).toThrow('while a request is served');
});
