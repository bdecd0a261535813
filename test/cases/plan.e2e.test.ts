/** `retl plan` on real runs: what it says is what the run then does, and asking changes nothing. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { previewRun } from '../../src/activities/preview.ts';
import { EXIT, exitOfError } from '../../src/cli/exit-codes.ts';
import type { ErrorCode } from '../../src/domain/errors.ts';
import type { Plan, PlanLine } from '../../src/domain/plan.ts';
import { tellPlan } from '../../src/planning/tell-plan.ts';
import { configurationOf, DESTINATIONS, SOURCES } from '../../src/worker-setup.ts';
import { retl } from '../cli/support.ts';
import { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';
import { ending, type SceneOptions } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  vi.stubEnv('RETL_JOURNAL_URL', system.env.RETL_JOURNAL_URL ?? '');
  await system.startWorker();
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await system.stop();
});

const as = (...args: readonly string[]) => retl(args, { cwd: system.project.folder, env: system.env });

async function planOf(mirror: string, ...args: readonly string[]): Promise<Plan> {
  const { code, stdout, stderr } = await as('plan', mirror, '--json', ...args);
  expect(stderr).toBe('');
  expect(code).toBe(0);
  const { plans } = JSON.parse(stdout);
  expect(plans).toHaveLength(1);
  return plans[0];
}

/** What the process that plans says, without the process. */
async function told(mirror: string): Promise<PlanLine | undefined> {
  const types = { sources: SOURCES, destinations: DESTINATIONS };
  const projectDir = system.project.folder;
  const logger = { info: () => undefined, warn: () => undefined };
  const deps = {
    ...types,
    configuration: configurationOf({ projectDir, destinations: DESTINATIONS, logger }),
  };
  const lines: PlanLine[] = [];
  await tellPlan(
    { projectDir, mirror, types, identities: null },
    (...asked) => previewRun(deps, ...asked),
    (line) => lines.push(line),
  );
  return lines.at(-1);
}

async function planned(mirror: string): Promise<Plan> {
  const line = await told(mirror);
  if (line?.kind !== 'plan') throw new Error(`not planned: ${JSON.stringify(line)}`);
  return line.plan;
}

const scene = (mirror: string, options: SceneOptions = {}) =>
  HttpScene.create(system, mirror, { rows: 20, ...options });

/** Every row of every table, every sequence, and every relation there is. */
async function wholeJournal(): Promise<unknown> {
  const relations = await system.rows<{ name: string; kind: string }>(
    `select c.relname as name, c.relkind as kind from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'retl' and c.relkind in ('r', 'S', 'i') order by 2, 1`,
  );
  const contents = await Promise.all(
    relations
      .filter(({ kind }) => kind !== 'i')
      .map(({ name }) =>
        system.rows(
          `select md5(string_agg(t, '|' order by t)) as content from (select row(x.*)::text as t from retl.${name} x) y`,
        ),
      ),
  );
  return { relations, contents };
}

describe('what a plan says', () => {
  test('dry-run-writes: preview twice, then run: the same plan, and the journal untouched', async () => {
    const mirror = await scene('preview');
    await mirror.completed();
    await mirror.exec(`delete from $table where id <= 'm003'; update $table set plan = 'gold' where id = 'm010';
      insert into $table values ('new', 'x')`);
    const [before, sent] = [await wholeJournal(), mirror.writes.length];
    const first = await as('plan', 'preview');
    const second = await as('plan', 'preview');
    const json = await planOf('preview');
    expect(await wholeJournal()).toEqual(before);
    expect(mirror.writes).toHaveLength(sent);
    expect(first).toEqual(second);
    expect(first.stdout).toContain('remove    3, 15% of what is held');
    expect(json.snapshot?.counts).toEqual({
      sourceRows: 18,
      excluded: 0,
      collapsed: 0,
      members: 18,
      held: 20,
      added: 1,
      changed: 1,
      removed: 3,
      unchanged: 16,
    });
    expect((await mirror.completed()).counts).toMatchObject({
      added: 1,
      changed: 1,
      removed: 3,
      unchanged: 16,
    });
    const [run] = await system.rows<{ generation: string; removals: string }>(
      `select 'sha256:' || encode(g.digest, 'hex') as generation, 'sha256:' || encode(r.removal_digest, 'hex') as removals
       from retl.run r join retl.generation g using (run_id) join retl.mirror m using (mirror_id)
       where m.name = 'preview' order by run_id desc limit 1`,
    );
    expect(json.snapshot?.digests).toMatchObject(run ?? {});
    expect((await planOf('preview', '--detailed-exitcode')).snapshot?.counts).toMatchObject({
      unchanged: 18,
    });
  });

  test('a native replacement: the plan foresees whom the run asks about, and what it uploads and drops', async () => {
    const replace = { strategy: 'native-replace', safety: { max_removals: '50%', empty_snapshot: 'hold' } };
    const target = `create table audience (id text primary key, plan text); insert into audience values ('stranger', 'x')`;
    const options = { target, destination: { swap: 'replace' }, mirror: replace };
    const mirror = await TableScene.create(system, 'swapped', options);
    expect((await planned('swapped')).snapshot?.guard).toEqual({
      kind: 'passes',
      unless: 'unknown-baseline',
    });
    expect((await as('plan', 'swapped')).stdout).toContain('unless the target holds anything');
    const first = await mirror.start();
    const asked = await mirror.untilParked(first);
    const holds = { kind: 'holds', code: 'unknown-baseline' };
    expect((await planned('swapped')).openRun?.plan?.guard).toEqual(holds);
    await mirror.answer(first, 'reject', asked);
    await ending(first);
    expect((await as('plan', 'swapped', '--detailed-exitcode')).code).toBe(EXIT.guardHeld);
    expect((await planned('swapped')).snapshot).toMatchObject({
      guard: holds,
      counts: { held: 0, added: 10 },
    });
    // A plan calls no destination: it does not speak for strangers.
    const file = join(system.project.folder, 'swapped.plan');
    await as('plan', 'swapped', '--out', file);
    expect((await as('run', 'swapped', '--plan', file)).code).toBe(EXIT.guardHeld);
    const again = system.temporal.client.workflow.getHandle('mirror/swapped');
    await again.signal('abort');
    await again.result();

    await mirror.configure({
      ...options,
      mirror: { ...replace, baseline: { kind: 'replace', attested: 'a test' } },
    });
    expect((await planned('swapped')).snapshot?.guard).toEqual({ kind: 'passes' });
    expect((await mirror.completed()).counts).toMatchObject({ added: 10, uploaded: 10 });
    expect(await mirror.targetRows()).toEqual(await mirror.sourceRows());
    await mirror.exec(
      `delete from $table where id <= 'm003'; update $table set plan = 'gold' where id = 'm010'`,
    );
    const { counts } = (await planned('swapped')).snapshot ?? {};
    expect(counts).toMatchObject({ held: 10, added: 0, changed: 1, removed: 3, unchanged: 6 });
    expect((await mirror.completed()).counts).toMatchObject({
      changed: 1,
      removed: 3,
      unchanged: 6,
      uploaded: 7,
    });
  }, 180_000);

  test('several at once: a block for each, the worst exit code, and one that fails keeps no other from it', async () => {
    const mirror = await scene('several-a');
    await mirror.completed();
    await mirror.exec('delete from $table');
    await scene('several-b', { rows: 5 });
    await scene('several-c', { query: 'select id from $table' });
    const { code, stdout, stderr } = await as('plan', 'several-b', 'several-*', '--detailed-exitcode');
    expect(code).toBe(EXIT.guardHeld);
    expect(stdout).toMatch(
      /^several-b.*add {7}5\n.*\n\nseveral-a.*would hold it.*\n\nseveral-c {2}cannot be planned\n$/s,
    );
    expect(stderr).toContain('data.unknown-column');
    const json = await as('plan', 'several-*', '--json');
    expect(json.code).toBe(EXIT.usage);
    expect(JSON.parse(json.stdout)).toMatchObject({
      plans: [
        { mirror: 'several-a', snapshot: { guard: { kind: 'holds' } } },
        { mirror: 'several-b' },
        { mirror: 'several-c', error: { code: 'data.unknown-column', details: { column: 'plan' } } },
      ],
    });
    expect(await as('plan', 'several-a', 'several-b', '--out', 'x.plan')).toMatchObject({
      code: EXIT.usage,
      stdout: '',
      stderr: expect.stringContaining('one mirror'),
    });
  });

  test('empty-ok: an empty snapshot would be held: it says by which limit, and what an approval is asked for', async () => {
    const mirror = await scene('plan-empty');
    await mirror.completed();
    await mirror.exec('delete from $table');
    const { code, stdout } = await as('plan', 'plan-empty', '--detailed-exitcode');
    expect(code).toBe(4);
    expect(stdout).toContain('remove    20, 100% of what is held');
    expect(stdout).toContain('guard     would hold it: the snapshot is empty (`safety.empty_snapshot`)');
    expect(stdout).toMatch(/asks {6}approval of 20 removals\n {2}shown {5}sha256:\w{64}\n/);
    expect(stdout).toContain('retl run plan-empty --approve-up-to 20');
    expect(await told('plan-empty')).toMatchObject({
      plan: { snapshot: { guard: { code: 'empty-snapshot' } } },
    });
    expect(await mirror.held()).toBe(20);
  });

  test('a mirror that has never run, then a new target: everything is new, and it says so', async () => {
    const mirror = await scene('plan-target', { rows: 5 });
    const first = await as('plan', 'plan-target', '--detailed-exitcode');
    expect(first.code).toBe(10);
    expect(first.stdout).toContain('It has never run');
    expect(first.stdout).toContain('add       5');
    expect(await mirror.runs()).toEqual([]);
    await mirror.completed();
    await mirror.configure({ destination: { upsert: { method: 'POST', path: '/elsewhere' } } });
    expect(await told('plan-target')).toMatchObject({
      plan: { target: 'new-target', snapshot: { counts: { added: 5, held: 0, removed: 0 } } },
    });
  });

  test('an unreachable destination is not asked', async () => {
    const mirror = await scene('plan-away', { rows: 3 });
    await mirror.completed();
    await mirror.audience.stop();
    expect(await told('plan-away')).toMatchObject({
      plan: { snapshot: { counts: { held: 3, unchanged: 3 } } },
    });
  });

  test('a run under way goes on undisturbed, and one that was let go is shown by its own plan', async () => {
    const mirror = await scene('plan-open', { rows: 10 });
    mirror.audience.always({ kind: 'status', status: 429, headers: { 'retry-after': '600' } });
    const handle = await mirror.start();
    await mirror.untilWaiting(handle, 'retry');
    const before = await wholeJournal();
    const during = await as('plan', 'plan-open');
    expect(during).toMatchObject({ code: 0, stderr: '' });
    expect(during.stdout).toMatch(/Run \d+ is open, in additions, held by default\/mirror\/plan-open/);
    expect(during.stdout).toContain('After it, the same start takes a fresh snapshot');
    expect(await wholeJournal()).toEqual(before);
    await mirror.signal('cancel');
    await handle.result();
    await mirror.exec('truncate $table');
    const after = await planOf('plan-open');
    expect(after).toMatchObject({
      next: 'open-run',
      snapshot: null,
      openRun: {
        phase: 'additions',
        released: 'cancelled',
        plan: { members: 10, counts: { added: 10, removed: 0 }, guard: null },
      },
    });
    expect((await as('plan', 'plan-open', '--out', 'p.plan')).stderr).toContain('goes on first');
    expect(await as('plan', 'plan-open', '--detailed-exitcode')).toMatchObject({ code: 10 });
  });
});

describe('a source that a run would refuse', () => {
  const keyed = (rows: string) => ({
    rows: `create table $table (id text, plan text); insert into $table values ${rows}`,
  });
  test.each<[string, ErrorCode, SceneOptions, object]>([
    ['duplicate-key', 'data.duplicate-key', keyed(`('a', 'x'), ('b', 'x'), ('a', 'y')`), { count: 1 }],
    ['null-key', 'data.null-key', keyed(`('a', 'x'), (null, 'x'), ('', 'y')`), { count: 2 }],
    [
      'conflicting',
      'data.conflicting-payloads',
      {
        ...keyed(`('a', 'x'), (' a', 'y')`),
        mirror: {
          members: { identity: { id: { column: 'id', normalize: 'trim' } }, payload: { plan: 'plan' } },
        },
      },
      { count: 1 },
    ],
    [
      'too-large',
      'data.operation-too-large',
      { ...keyed(`('a', repeat('x', 3000)), ('b', 'x')`), mirror: { batch: { bytes: '2kB' } } },
      { count: 1 },
    ],
    ['wrong-query', 'source.query', { query: 'select nothing from $table' }, { sqlstate: '42703' }],
    ['wrong-column', 'data.unknown-column', { query: 'select id from $table' }, { column: 'plan' }],
  ])('%s: a plan ends as the run does, with nothing written', async (name, code, options, details) => {
    const mirror = await scene(`plan-${name}`, options);
    const before = await wholeJournal();
    const plan = await told(`plan-${name}`);
    expect(await wholeJournal()).toEqual(before);
    expect(plan).toMatchObject({ kind: 'failed', code, details });
    expect(exitOfError(code)).toBe(EXIT.usage);
    const run = await ending(await mirror.start());
    expect(run).toMatchObject({ kind: 'failed', type: 'invalid', message: expect.stringContaining(code) });
    const hash = /sha256:\w{64}/.exec(JSON.stringify(plan))?.[0];
    if (hash !== undefined) expect(JSON.stringify(run)).toContain(hash);
  });

  test('key types that have changed, a mirror that owns the target already, and an unknown one', async () => {
    const mirror = await scene('plan-types', keyed(`('1', 'x')`));
    await mirror.completed();
    await mirror.configure({ query: 'select id::int as id, plan from $table' });
    expect(await told('plan-types')).toMatchObject({ kind: 'failed', code: 'data.key-type-changed' });
    await mirror.configure({});
    const text = await readFile(join(system.project.folder, 'mirrors', 'plan-types.yaml'), 'utf8');
    await writeFile(join(system.project.folder, 'mirrors', 'plan-second.yaml'), text);
    const { code, stdout, stderr } = await as('plan', 'plan-second');
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain('run.target-owned');
    expect(await as('plan', 'plan-typo')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('config.unknown-mirror'),
    });
  });
});
