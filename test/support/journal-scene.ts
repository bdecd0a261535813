/** A journal with one run in `additions`, and the functions of the database called as no typed caller would call them. */

import { createTestJournal, stateOf, type TestJournal } from './journal.ts';
import { type Prepared, rowsOf, ScriptedRun, shaHex } from './journal-run.ts';

export interface FreshOptions {
  /** What the mirror holds already. */
  readonly held?: Readonly<Record<string, string>>;
  readonly mayResend?: boolean;
  readonly lastCopyDecides?: boolean;
  readonly maxBatchRows?: number;
}

export class BatchScene {
  #journal: TestJournal | null = null;
  #run: ScriptedRun | null = null;
  #names = 0;

  get journal(): TestJournal {
    if (this.#journal === null) throw new Error('the scene is not open');
    return this.#journal;
  }

  get run(): ScriptedRun {
    if (this.#run === null) throw new Error('the scene has no run');
    return this.#run;
  }

  set run(run: ScriptedRun) {
    this.#run = run;
  }

  async open(): Promise<void> {
    this.#journal = await createTestJournal();
  }

  async close(): Promise<void> {
    await this.journal.close();
  }

  /** A mirror that nothing has used yet. */
  name(): string {
    this.#names += 1;
    return `m${this.#names}`;
  }

  /** A fresh run in `additions`, with five members to add, `a` to `e`, but for those that are held. */
  async fresh(options: FreshOptions = {}): Promise<ScriptedRun> {
    const { held, ...overrides } = options;
    const mirror = this.name();
    const db = this.journal.runtime;
    if (held !== undefined) await ScriptedRun.whole(db, { mirror }, rowsOf(held));
    const run = await ScriptedRun.open(db, { mirror, ...overrides });
    await run.upToAdditions(rowsOf({ a: '1', b: '1', c: '1', d: '1', e: '1' }));
    this.#run = run;
    return run;
  }

  /** The next batch of additions, prepared. */
  async one(size = 5): Promise<Prepared> {
    const [batch] = await this.run.prepare('upsert', size, 1);
    if (batch === undefined) throw new Error('nothing to prepare');
    return batch;
  }

  async sent(size = 5): Promise<Prepared> {
    const batch = await this.one(size);
    await this.run.sending(batch.id);
    return batch;
  }

  async stateNow(batch: Prepared): Promise<string | undefined> {
    const sql = "select state from retl.batch where batch_id = decode($1, 'hex')";
    const { rows } = await this.journal.admin.query<{ state: string }>(sql, [batch.id.slice(7)]);
    return rows[0]?.state;
  }

  /** Calls prepare_batches as it stands in the database, with whatever arrays; resolves to its SQLSTATE. */
  rawPrepare(action: unknown, ids: unknown, last: unknown, hashes: unknown, bytes: unknown) {
    const sql =
      'select retl.prepare_batches($1, $2, $3, $4::bytea[], $5::bigint[], $6::bytea[], $7::bigint[])';
    const { run, epoch } = this.run.attempt;
    return stateOf(this.journal.runtime.query(sql, [run, epoch, action, ids, last, hashes, bytes]));
  }

  /** An array of one hash, as PostgreSQL reads it; another for each run and label. */
  id(label: string): string {
    return `{"\\\\x${shaHex(`${label} ${this.run.run}`)}"}`;
  }
}
