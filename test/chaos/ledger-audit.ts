/**
 * Holds what destinations really did against what the sources really held, at each moment: every effect must be what some one
 * version of the source asked for that its run can have read; nothing may be done twice where that would do harm; and the journal
 * may not claim more than is so.
 */

import type pg from 'pg';
import { logPosition } from '../../src/domain/ids.ts';
import { readEffects, readEntries } from '../../src/journal/log.ts';
import type { Lane, Seen } from './lane.ts';
import { type Contents, seenBetween, textOf, type Version } from './story.ts';

/** What it needs of a lane. */
export interface Watched extends Pick<Lane, 'name' | 'whole' | 'once' | 'held' | 'effects'> {
  readonly story: { readonly versions: readonly Version[] };
}

interface RunWindow {
  readonly run: string;
  readonly opened: number;
  /** Infinity while it is open. */
  readonly closed: number;
}

interface RunBook {
  /** Versions of the source that the run may have sealed. */
  candidates: readonly number[];
  /** What it came to last: additions, then removals, then its finish. */
  stage: number;
  readonly done: Map<string, number>;
}

const STAGES = { upsert: 0, remove: 1, finish: 2 };

const RUNS = `select run_id::text as run, extract(epoch from opened_at)::float8 * 1000 as opened,
  coalesce(extract(epoch from closed_at)::float8 * 1000, 'infinity') as closed
  from retl.run join retl.mirror using (mirror_id) where name = $1 and closing is distinct from 'imported' order by run_id`;
const RUNS_OF = `select encode(batch_id, 'hex') as key, run_id::text as run from retl.batch where batch_id = any($1)`;
const NOT_APPLIED = `select encode(batch_id, 'hex') as key from retl.batch join retl.run using (run_id)
  join retl.mirror using (mirror_id) where name = $1 and state = 'not-applied'`;

export class LedgerAudit {
  /** What is wrong, in words. */
  readonly found: string[] = [];
  readonly #read = new Map<string, number>();
  readonly #books = new Map<string, RunBook>();
  readonly #published = new Map<string, number>();
  #position = logPosition(0);
  effects = 0;
  looks = 0;

  constructor(
    private readonly journal: pg.Pool,
    private readonly lanes: readonly Watched[],
    /** Told at once of what is wrong. */
    private readonly told: (what: string) => void,
  ) {}

  /** Looks at what has happened since the last time. @throws where the journal or a destination is away */
  async look(): Promise<void> {
    for (const lane of this.lanes) {
      if (lane.whole) await this.#lookAtWhole(lane);
      else await this.#follow(lane);
      if (this.looks % 5 === 0) await this.#holdToNotApplied(lane);
    }
    await this.#holdToLog();
    this.looks += 1;
  }

  #wrong(lane: Watched, what: string): void {
    this.#note(`${lane.name}: ${what}`);
  }

  #note(what: string): void {
    this.found.push(what);
    this.told(what);
  }

  /** A reader finds a whole set, and never an older one than before. */
  async #lookAtWhole(lane: Watched): Promise<void> {
    const held = await lane.held();
    if (held === null || (held.size === 0 && !this.#published.has(lane.name))) return;
    const text = textOf(held);
    const least = this.#published.get(lane.name) ?? 0;
    const at = lane.story.versions.findIndex(
      ({ contents }, version) => version >= least && contents !== null && textOf(contents) === text,
    );
    if (at >= 0) this.#published.set(lane.name, at);
    else
      this.#wrong(lane, `a reader finds a set of ${held.size} that the source never held, or an older one`);
  }

  async #follow(lane: Watched): Promise<void> {
    const from = this.#read.get(lane.name) ?? 0;
    const effects = await lane.effects(from);
    if (effects.length === 0) return;
    const keys = effects.flatMap(({ key }) => (key === null ? [] : [Buffer.from(bare(key), 'hex')]));
    const { rows } = await this.journal.query<{ key: string; run: string }>(RUNS_OF, [keys]);
    const runs = new Map(rows.map(({ key, run }) => [key, run]));
    const windows = (await this.journal.query<RunWindow>(RUNS, [lane.name])).rows;
    for (const effect of effects) this.#hold(lane, effect, windowOf(effect, runs, windows));
    this.#read.set(lane.name, from + effects.length);
    this.effects += effects.length;
  }

  #hold(lane: Watched, effect: Seen, window: RunWindow | undefined): void {
    const what = `${effect.action} of ${effect.id} at ${new Date(effect.at).toISOString()}`;
    if (window === undefined) {
      this.#wrong(lane, `${what}: no run has asked for it`);
      return;
    }
    const name = `${lane.name} ${window.run}`;
    const book = this.#books.get(name) ?? {
      candidates: seenBetween(lane.story.versions, window.opened, effect.at),
      stage: 0,
      done: new Map(),
    };
    this.#books.set(name, book);
    const left = book.candidates.filter((at) => asks(lane.story.versions[at]?.contents ?? null, effect));
    if (left.length === 0)
      this.#wrong(lane, `run ${window.run}, ${what}: no snapshot that it can have asks for it`);
    else book.candidates = left;
    const stage = STAGES[effect.action];
    if (stage < book.stage && effect.byHand !== true)
      this.#wrong(lane, `run ${window.run}, ${what}: it had come further already`);
    book.stage = Math.max(book.stage, stage);
    const times = (book.done.get(`${effect.action} ${effect.id}`) ?? 0) + 1;
    book.done.set(`${effect.action} ${effect.id}`, times);
    if (lane.once && times > 1) this.#wrong(lane, `run ${window.run}, ${what}: for the ${times}. time`);
  }

  /** What the journal says was not applied was not. */
  async #holdToNotApplied(lane: Watched): Promise<void> {
    const { rows } = await this.journal.query<{ key: string }>(NOT_APPLIED, [lane.name]);
    const keys = new Set(rows.map(({ key }) => key));
    const applied = (await lane.effects(0)).find(({ key }) => key !== null && keys.has(bare(key)));
    if (applied !== undefined) this.#wrong(lane, `taken for not applied, and it was: ${applied.key}`);
  }

  /** What the log says was accepted was done. */
  async #holdToLog(): Promise<void> {
    const entries = await readEntries(this.journal, this.#position, 500);
    const done = new Set<string>();
    for (const lane of this.lanes)
      for (const { key, action, id } of await lane.effects(0))
        if (key !== null) done.add(`${bare(key)} ${action} ${id}`);
    const keys = new Set([...done].map((text) => text.split(' ')[0]));
    for (const entry of entries) {
      this.#position = entry.position;
      const key = bare(entry.batch);
      if (entry.kind === 'finish' || !keys.has(key)) continue;
      // A compaction may have dropped what it was made of.
      const effects = await readEffects(this.journal, entry).catch(() => []);
      for (const { action, payload } of effects) {
        const { id } = JSON.parse(payload) as { readonly id: string };
        if (!done.has(`${key} ${action} ${id}`))
          this.#note(`log position ${entry.position}: ${action} of ${id} is not so`);
      }
    }
  }
}

function asks(contents: Contents | null, { action, id, plan }: Seen): boolean {
  if (action === 'finish') return true;
  return action === 'remove' ? contents?.has(id) === false : contents?.get(id) === plan;
}

function windowOf(
  { key, at }: Seen,
  runs: ReadonlyMap<string, string>,
  windows: readonly RunWindow[],
): RunWindow | undefined {
  if (key === null) return windows.find(({ opened, closed }) => opened <= at && at <= closed);
  return windows.find(({ run }) => run === runs.get(bare(key)));
}

function bare(key: string): string {
  return key.replace('sha256:', '');
}
