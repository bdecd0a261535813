/**
 * Everything that the journal knows about one member, for `retl explain`. Without values, unless they are asked for and
 * the role may read them (migrations/0004). One read-only snapshot per answer, and index look-ups only.
 */

import type pg from 'pg';
import type { FoundChange } from '../domain/found.ts';
import { type LogPosition, type Sha256, sha256FromHex, type TargetId, targetId } from '../domain/ids.ts';
import {
  condense,
  type RunStory,
  type StoryEntry,
  tellRuns,
  type Verdict,
  verdictOf,
} from '../domain/member-story.ts';
import { big, flag, one, text, textOrNull } from './decode.ts';
import { logHead } from './log.ts';
import { changesOf, heldSince, type MemberChanges } from './member-changes.ts';
import { type Holding, holdingOf, tracesOf } from './member-trace.ts';
import { type MemberValues, valuesOf } from './member-values.ts';
import { consistently, type Queryable, run } from './pool.ts';

export type { Holding } from './member-trace.ts';
export type { MemberValues, OperationValues } from './member-values.ts';

export interface Explanation {
  readonly identityHash: Sha256;
  /** `null` on pages after the first, whose runs alone do not tell. */
  readonly verdict: Verdict | null;
  /** `null`: not held. */
  readonly held: Holding | null;
  /** Newest first. */
  readonly runs: readonly StoryEntry[];
  /** Where the next page goes on; `null`: there is none. */
  readonly next: string | null;
  /** `null` unless asked for. */
  readonly values: MemberValues | null;
}

export interface ExplainOptions {
  /** Entries of a page, at most. */
  readonly limit: number;
  /** `next` of the page before. */
  readonly after: string | null;
  readonly values: boolean;
}

/** Runs that are looked at for one page: where nothing happens to a member, years of runs make one entry. */
const MOST_RUNS = 1_000;
const CHUNK = 100;

const TARGET = `
  select t.target_id from retl.target t join retl.mirror m using (mirror_id) where m.name = $1
  order by (select max(r.run_id) from retl.run r where r.target_id = t.target_id) desc nulls last limit 1`;

/** The target of the mirror's newest run; `null`: it has never run. @throws JournalError */
export async function targetOf(db: Queryable, mirror: string): Promise<TargetId | null> {
  const [row] = await run(db, TARGET, [mirror]);
  return row === undefined ? null : targetId(big(row, 'target_id'));
}

const MAY_READ_VALUES = `select pg_has_role(current_user, 'retl_reader', 'USAGE') as may`;

/**
 * Whether the role has been given the right to read values. A worker's role can select them, since it sends them, and is
 * no person's: it does not count. @throws JournalError
 */
export async function mayReadValues(db: Queryable): Promise<boolean> {
  return flag(one(await run(db, MAY_READ_VALUES)), 'may');
}

/** @throws JournalError; RangeError where `after` is not of this function's making */
export async function explainMember(
  pool: pg.Pool,
  target: TargetId,
  identityHash: Sha256,
  options: ExplainOptions,
): Promise<Explanation> {
  const cursor = options.after === null ? null : readCursor(options.after);
  return consistently(pool, async (db) => {
    const held = await holdingOf(db, target, identityHash);
    const from = cursor ?? { before: null, held: held !== null };
    const page = await readPage(db, target, identityHash, from, options.limit);
    return {
      identityHash,
      verdict: cursor === null ? verdictOf(page.stories, held !== null) : null,
      held,
      runs: page.entries,
      next: page.next,
      values: options.values ? await valuesOf(db, identityHash, held, page.stories) : null,
    };
  });
}

/** What the log says of one member, and since when it is held without a break; `null`: it is not, or this role cannot be told. */
export interface MemberPast extends MemberChanges {
  /** The head of the log, as of which this is. */
  readonly position: LogPosition;
  readonly since: Pick<FoundChange, 'position' | 'at'> | null;
}

/** @param limit changes at most, the newest first. @throws JournalError */
export function pastOf(
  pool: pg.Pool,
  target: TargetId,
  identityHash: Sha256,
  limit: number,
): Promise<MemberPast> {
  return consistently(pool, async (db) => {
    const { position } = await logHead(db);
    const held = await holdingOf(db, target, identityHash);
    const since = held === null ? null : await heldSince(db, target, identityHash);
    return { ...(await changesOf(db, target, identityHash, limit)), position, since };
  });
}

/** Where a page begins, and whether the member was held there: that never changes for runs that are over. */
interface Cursor {
  readonly before: bigint | null;
  readonly held: boolean;
}

function readCursor(textOfIt: string): Cursor {
  const parts = /^([1-9][0-9]{0,9})-(held|absent)$/.exec(textOfIt);
  if (parts?.[1] === undefined) throw new RangeError('not where a page ended');
  return { before: BigInt(parts[1]), held: parts[2] === 'held' };
}

interface Page {
  readonly stories: readonly RunStory[];
  readonly entries: readonly StoryEntry[];
  readonly next: string | null;
}

async function readPage(
  db: Queryable,
  target: TargetId,
  identityHash: Sha256,
  from: Cursor,
  limit: number,
): Promise<Page> {
  const stories: RunStory[] = [];
  let at = from;
  let more = true;
  while (more && stories.length < MOST_RUNS && condense(stories).length <= limit) {
    const traces = await tracesOf(db, target, identityHash, at.before, CHUNK);
    stories.push(...tellRuns(traces, at.held));
    const last = stories.at(-1);
    more = traces.length === CHUNK;
    if (last !== undefined) at = { before: BigInt(last.runId), held: last.heldBefore };
  }
  const entries = condense(stories).slice(0, limit);
  const last = entries.at(-1);
  if (last === undefined) return { stories, entries, next: null };
  const lastRun = last.kind === 'run' ? last.runId : last.firstRunId;
  const end = stories.findIndex((story) => story.runId === lastRun);
  const isWhole = !more && end === stories.length - 1;
  const held = stories[end]?.heldBefore === true;
  return {
    stories: stories.slice(0, end + 1),
    entries,
    next: isWhole ? null : `${lastRun}-${held ? 'held' : 'absent'}`,
  };
}

/** What a snapshot says of one row of the source. */
export interface KeyTrace {
  readonly runId: string;
  /** Its sealed rows: there, dropped since, or never there. */
  readonly snapshot: string;
  /** `excluded` on purpose, by `when` or a mapping that gives no member; `null`: its rows are not there. */
  readonly given: 'excluded' | 'member' | 'absent' | null;
  /** Of the first member that the row gives. */
  readonly identityHash: Sha256 | null;
}

const KEY = `
  select run_id, snapshot, given, encode(identity_hash, 'hex') as identity_hash
  from retl.trace_key($1, $2, null, $3) order by run_id desc`;

/**
 * What the snapshots of the target's newest runs say of a source key, newest first.
 * @param key canonical JSON array of the key's texts. @throws JournalError
 */
export async function explainKey(
  db: Queryable,
  target: TargetId,
  key: string,
  limit: number,
): Promise<readonly KeyTrace[]> {
  return (await run(db, KEY, [target, key, limit])).map((row) => {
    const hash = textOrNull(row, 'identity_hash');
    return {
      runId: big(row, 'run_id').toString(),
      snapshot: text(row, 'snapshot'),
      given: textOrNull(row, 'given') as KeyTrace['given'],
      identityHash: hash === null ? null : sha256FromHex(hash),
    };
  });
}
