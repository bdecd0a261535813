/** Runs that the guard has something to say about: a mirror that holds ten members, and a snapshot with fewer. */

import type { AdmitRequest, Beforehand, GuardAnswer, GuardResult, Question } from '../../src/journal/runs.ts';
import { createTestJournal, type TestJournal } from './journal.ts';
import { rowsOf, ScriptedRun, type TestRow } from './journal-run.ts';

export const HELD = 'abcdefghij';

/** One row for each letter. */
export function members(letters: string): readonly TestRow[] {
  return rowsOf(Object.fromEntries([...letters].map((id) => [id, '1'])));
}

export class GuardScene {
  #journal: TestJournal | null = null;
  #names = 0;

  get journal(): TestJournal {
    if (this.#journal === null) throw new Error('the scene is not open');
    return this.#journal;
  }

  async open(): Promise<void> {
    this.#journal = await createTestJournal();
  }

  async close(): Promise<void> {
    await this.journal.close();
  }

  name(): string {
    this.#names += 1;
    return `g${this.#names}`;
  }

  /** A planned run of `letters` in the phase `guard`, of a mirror that holds ten; it may remove none unless it says so. */
  async planned(letters: string, more: Partial<AdmitRequest> = {}): Promise<ScriptedRun> {
    const mirror = more.mirror ?? this.name();
    await ScriptedRun.whole(this.journal.runtime, { mirror }, members(HELD));
    const run = await ScriptedRun.open(this.journal.runtime, { mirror, maxRemovals: 0, ...more });
    await run.init();
    await run.load(members(letters));
    await run.seal();
    return run;
  }

  /** The same, parked; resolves to the question, too. */
  async parked(
    letters: string,
    more: Partial<AdmitRequest> = {},
  ): Promise<{ readonly run: ScriptedRun; readonly asked: Question }> {
    const run = await this.planned(letters, more);
    return { run, asked: question(await run.plan()) };
  }

  /** A run of a native replacement; what its target holds is written by hand, for none of them can be promoted yet. */
  async replacing(letters: string, more: Partial<AdmitRequest> = {}): Promise<ScriptedRun> {
    const { runtime, admin } = this.journal;
    const mirror = this.name();
    const strategy = 'native-replace';
    const run = await ScriptedRun.open(runtime, { mirror, strategy, maxRemovals: 0, ...more });
    await runtime.query("select retl.record_baseline($1, $2, 'replace', 'verified', null)", [
      run.run,
      run.attempt.epoch,
    ]);
    const { target } = await run.record();
    await admin.query(
      `insert into retl.membership_${target} select sha256(convert_to('{"id":"' || id || '"}', 'UTF8')), sha256('1'), 1
       from unnest($1::text[]) id`,
      [[...HELD]],
    );
    await admin.query('update retl.target set held = $2 where target_id = $1', [target, HELD.length]);
    await run.step('init');
    await run.load(members(letters));
    await run.seal();
    return run;
  }

  /** Somebody takes a member out of the sealed snapshot: one more is to be removed. */
  async tamper(run: ScriptedRun, letter: string): Promise<void> {
    const { generation } = await run.record();
    await this.journal.admin.query(
      `delete from retl.generation_${generation} where identity = '{"id":"' || $1 || '"}'`,
      [letter],
    );
  }

  /** The plan as `retl plan` would have saved it. */
  async planOf(run: ScriptedRun): Promise<NonNullable<Beforehand['plan']>> {
    const { rows } = await this.journal.admin.query<{ g: string; n: string; d: string }>(
      `select encode(g.digest, 'hex') as g, r.planned_removed as n, encode(r.removal_digest, 'hex') as d
       from retl.run r join retl.generation g using (run_id) where r.run_id = $1`,
      [run.run],
    );
    const [row] = rows;
    if (row === undefined) throw new Error('no plan');
    return { generation: `sha256:${row.g}`, removals: Number(row.n), removalDigest: `sha256:${row.d}` };
  }
}

/** What a run that is parked asks. */
export function question(answer: GuardResult | GuardAnswer | null): Question {
  if (answer?.kind !== 'held') throw new Error(`not parked: ${JSON.stringify(answer)}`);
  return answer;
}
