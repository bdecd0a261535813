/** The play's own judge sees what it is there to see: each wrong deed is put before it once, beside the right ones. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestJournal, type TestJournal } from '../support/journal.ts';
import { rowsOf, ScriptedRun } from '../support/journal-run.ts';
import type { Seen } from './lane.ts';
import { LedgerAudit, type Watched } from './ledger-audit.ts';
import type { Contents, Version } from './story.ts';

const BOTH: Contents = new Map([
  ['m1', 'vip'],
  ['m2', 'vip'],
]);
const ONE: Contents = new Map([['m1', 'vip']]);

let journal: TestJournal;
/** Keys of the additions of the first run, and of the removals of the second. */
let added: string;
let removed: string;
let between: number;
const begun = Date.now() - 60_000;

beforeAll(async () => {
  journal = await createTestJournal();
  await ScriptedRun.whole(journal.runtime, { mirror: 'watched' }, rowsOf({ m1: 'vip', m2: 'vip' }));
  between = Date.now();
  await ScriptedRun.whole(journal.runtime, { mirror: 'watched' }, rowsOf({ m1: 'vip' }));
  const { rows } = await journal.admin.query<{ action: string; key: string }>(
    `select action, 'sha256:' || encode(batch_id, 'hex') as key from retl.batch where operations is not null order by run_id`,
  );
  [added = '', removed = ''] = rows.map(({ key }) => key);
  expect(rows.map(({ action }) => action)).toEqual(['upsert', 'remove']);
});
afterAll(() => journal.close());

const upsert = (id: string, more: Partial<Seen> = {}): Seen => ({
  key: added,
  action: 'upsert',
  id,
  plan: 'vip',
  at: between,
  ...more,
});
const remove = (id: string, more: Partial<Seen> = {}): Seen => ({
  key: removed,
  action: 'remove',
  id,
  plan: '',
  at: Date.now(),
  ...more,
});

/** The source had both, and then the first alone. */
function versions(): readonly Version[] {
  return [
    { contents: BOTH, began: begun, ended: between },
    { contents: ONE, began: between, ended: Number.POSITIVE_INFINITY },
  ];
}

async function judged(effects: readonly Seen[], more: Partial<Watched> = {}): Promise<readonly string[]> {
  const lane: Watched = {
    name: 'watched',
    whole: false,
    once: true,
    story: { versions: versions() },
    held: async () => null,
    effects: async (from) => effects.slice(from),
    ...more,
  };
  const audit = new LedgerAudit(journal.admin, [lane], () => undefined);
  await audit.look();
  return audit.found;
}

test('nothing is wrong with what the snapshots asked for', async () => {
  expect(await judged([upsert('m1'), upsert('m2'), remove('m2')])).toEqual([]);
});

test.each<readonly [string, () => readonly Seen[], RegExp]>([
  [
    'a member is removed that the snapshot wants',
    () => [upsert('m1'), upsert('m2'), remove('m2'), remove('m1')],
    /remove of m1 .* no snapshot/,
  ],
  [
    'another value than any snapshot had',
    () => [upsert('m1', { plan: 'gold' }), upsert('m2'), remove('m2')],
    /upsert of m1 .* no snapshot/,
  ],
  [
    'something is done twice',
    () => [upsert('m1'), upsert('m2'), upsert('m2'), remove('m2')],
    /upsert of m2 .* for the 2\. time/,
  ],
  [
    'an addition after the removals of its run',
    () => [upsert('m1'), upsert('m2'), remove('m2'), upsert('m1', { key: removed })],
    /upsert of m1 .* come further/,
  ],
  [
    'nobody has asked for it',
    () => [upsert('m1'), upsert('m2'), upsert('m1', { key: `sha256:${'0'.repeat(64)}` }), remove('m2')],
    /upsert of m1 .* no run/,
  ],
  ['the log claims what was not done', () => [upsert('m1'), remove('m2')], /log position \d+: upsert of m2/],
])('it is found out when %s', async (_, effects, words) => {
  expect(await judged(effects())).toEqual([expect.stringMatching(words)]);
});

test('it is found out when the journal takes something for not applied that was', async () => {
  const run = await ScriptedRun.open(journal.runtime, { mirror: 'doubtful' });
  await run.upToAdditions(rowsOf({ m1: 'vip' }));
  const [batch] = await run.prepare('upsert', 10);
  const key = batch?.id ?? '';
  await journal.admin.query(
    `update retl.batch set state = 'not-applied' where batch_id = decode($1, 'hex')`,
    [key.replace('sha256:', '')],
  );
  const found = await judged([upsert('m1', { key, at: Date.now() })], {
    name: 'doubtful',
    story: { versions: [{ contents: ONE, began: begun, ended: Number.POSITIVE_INFINITY }] },
  });
  expect(found).toEqual([expect.stringMatching(/taken for not applied/)]);
});

test('a set that is only ever seen whole: half of it, and an older one than before, are found out', async () => {
  let held: Contents | null = null;
  const lane: Watched = {
    name: 'whole',
    whole: true,
    once: false,
    story: { versions: versions() },
    held: async () => held,
    effects: async () => [],
  };
  const audit = new LedgerAudit(journal.admin, [lane], () => undefined);
  for (const next of [null, BOTH, ONE]) {
    held = next;
    await audit.look();
  }
  expect(audit.found).toEqual([]);
  held = BOTH;
  await audit.look();
  held = new Map([['m2', 'vip']]);
  await audit.look();
  expect(audit.found).toHaveLength(2);
});
