/**
 * A source table that changes at random, and everything that it ever held: each version with the moments between which a reader
 * may have seen it. Whatever a run does must agree with one version that it can have read.
 */

import type pg from 'pg';
import type { Dice } from './dice.ts';

/** Members by id, each with its plan; `null`: a reader is refused (two rows have one key). */
export type Contents = ReadonlyMap<string, string>;

export interface Version {
  readonly contents: Contents | null;
  /** Milliseconds since 1970: not seen before, and not seen any more after. */
  readonly began: number;
  ended: number;
}

const CHANGES = { add: 6, drop: 5, change: 6, exclude: 2, twin: 1, empty: 0.4, purge: 1 };
const IDS = 60;

export class Story {
  readonly versions: Version[] = [];
  /** Rows by id; `null`: the row is left out by the mirror's condition. */
  readonly #rows = new Map<string, string | null>();
  #twin: string | null = null;
  changes = 0;

  private constructor(
    private readonly pool: pg.Pool,
    readonly table: string,
    private readonly dice: Dice,
    private readonly plans: readonly string[],
  ) {}

  /** @param plans values of the column; none of them is refused by the source itself. */
  static async begin(
    pool: pg.Pool,
    table: string,
    dice: Dice,
    plans: readonly string[] = ['vip', 'gold', 'free'],
  ): Promise<Story> {
    const story = new Story(pool, table, dice, plans);
    await pool.query(`create table ${table} (n bigserial primary key, id text not null, plan text)`);
    for (let n = 1; n <= 30; n += 1) story.#rows.set(nameOf(n), 'vip');
    const began = Date.now();
    await pool.query(
      `insert into ${table} (id, plan) select 'm' || lpad(n::text, 3, '0'), 'vip' from generate_series(1, 30) n`,
    );
    story.#note(began, Date.now());
    return story;
  }

  /** What the query returns now. */
  get now(): Contents {
    return members(this.#rows);
  }

  /** Something happens to the rows. */
  async change(): Promise<void> {
    if (this.#twin !== null || this.#rows.size < 4) return this.mend();
    const kind = this.dice.weighted(CHANGES);
    if (kind === 'twin') return this.#makeTwin();
    await this.#write((next) => {
      const count = kind === 'purge' ? Math.ceil(next.size * 0.7) : this.dice.between(1, 8);
      if (kind === 'empty') next.clear();
      else for (let n = 0; n < count; n += 1) this.#touch(kind, next);
    });
  }

  /** Nothing is wrong with the rows any more. */
  async mend(plans: readonly string[] = this.plans): Promise<void> {
    if (this.#twin !== null) {
      const began = Date.now();
      await this.pool.query(
        `delete from ${this.table} a using ${this.table} b where a.id = b.id and a.n > b.n`,
      );
      this.#twin = null;
      this.#note(began, Date.now());
    }
    await this.#write((next) => {
      while (next.size < 25) next.set(nameOf(this.dice.between(1, IDS)), this.dice.pick(plans));
      for (const [id, plan] of next) if (plan !== null && !plans.includes(plan)) next.set(id, plans[0] ?? '');
    });
  }

  #touch(kind: 'add' | 'drop' | 'change' | 'exclude' | 'purge', next: Map<string, string | null>): void {
    const known = [...next.keys()];
    if (kind === 'add') next.set(nameOf(this.dice.between(1, IDS)), this.dice.pick(this.plans));
    else if (known.length === 0) return;
    else if (kind === 'change') next.set(this.dice.pick(known), this.dice.pick(this.plans));
    else if (kind === 'exclude') next.set(this.dice.pick(known), null);
    else next.delete(this.dice.pick(known));
  }

  async #makeTwin(): Promise<void> {
    const id = this.dice.pick([...this.#rows.keys()]);
    const began = Date.now();
    await this.pool.query(`insert into ${this.table} (id, plan) values ($1, 'vip')`, [id]);
    this.#twin = id;
    this.changes += 1;
    this.#note(began, Date.now());
  }

  async #write(make: (next: Map<string, string | null>) => void): Promise<void> {
    const next = new Map(this.#rows);
    make(next);
    const gone = [...this.#rows.keys()].filter((id) => !next.has(id));
    const put = [...next].filter(([id, plan]) => this.#rows.get(id) !== plan || !this.#rows.has(id));
    if (gone.length + put.length === 0) return;
    const began = Date.now();
    await this.pool.query(
      `with gone as (delete from ${this.table} where id = any($1) or id = any($2))
       insert into ${this.table} (id, plan) select * from unnest($2::text[], $3::text[])`,
      [gone, put.map(([id]) => id), put.map(([, plan]) => plan)],
    );
    this.#rows.clear();
    for (const [id, plan] of next) this.#rows.set(id, plan);
    this.changes += 1;
    this.#note(began, Date.now());
  }

  #note(began: number, ended: number): void {
    const last = this.versions.at(-1);
    if (last !== undefined) last.ended = ended;
    const contents = this.#twin === null ? members(this.#rows) : null;
    this.versions.push({ contents, began, ended: Number.POSITIVE_INFINITY });
  }
}

/** Versions that a reader may have seen between two moments, by their numbers. */
export function seenBetween(versions: readonly Version[], from: number, to: number): readonly number[] {
  return versions.flatMap(({ began, ended, contents }, at) =>
    contents !== null && began <= to && ended >= from ? [at] : [],
  );
}

function members(rows: ReadonlyMap<string, string | null>): Contents {
  return new Map([...rows].flatMap(([id, plan]) => (plan === null ? [] : [[id, plan] as const])));
}

function nameOf(n: number): string {
  return `m${String(n).padStart(3, '0')}`;
}

/** One text for one set. */
export function textOf(contents: ReadonlyMap<string, unknown>): string {
  return JSON.stringify([...contents].sort(([a], [b]) => (a < b ? -1 : 1)));
}
