/**
 * How the mirrors stand, for metrics: read every few seconds by every worker, so that what it costs grows with the mirrors and
 * with what is open, never with what has been. No values, no identities.
 */

import type pg from 'pg';
import { type LogPosition, logPosition } from '../domain/ids.ts';
import type { Closing, OpenState } from '../domain/run.ts';
import { big, number, one, type Row, text, textOrNull } from './decode.ts';
import { doingOf } from './open-state.ts';
import { consistently, run } from './pool.ts';

export interface VitalSigns {
  /** 0: the log is empty. */
  readonly head: LogPosition;
  readonly earliest: LogPosition;
  /** By name. */
  readonly mirrors: readonly MirrorSigns[];
}

/** Ages in seconds, by the journal's clock. */
export interface MirrorSigns {
  readonly mirror: string;
  /** Members that the target of its last run is known to hold. */
  readonly held: number;
  /** `null`: none is open. */
  readonly open: {
    readonly state: OpenState;
    readonly age: number;
    /** Since it waits for what it waits for; 0: it does not wait. */
    readonly waits: number;
  } | null;
  /** Since a run last completed; since the mirror was first admitted where none ever has. */
  readonly sinceCompleted: number;
  /** How its last closed run ended; `null`: none was ever closed. */
  readonly lastOutcome: Closing | null;
  /** Of the open run. */
  readonly unknown: Unresolved;
  readonly staged: Unresolved;
}

export interface Unresolved {
  readonly batches: number;
  /** Since the oldest was sent, or staged; 0: there is none. */
  readonly age: number;
}

/** A journal that takes longer is away, for whoever looks every few seconds. */
const LOOK_WITHIN = '5s';

const seconds = (since: string) =>
  `greatest(0, coalesce(extract(epoch from clock_timestamp() - ${since}), 0))::float8`;

/**
 * Equality, but said so that the newest run is looked for in the index of the mirror's runs: else the planner may go through the
 * runs of all mirrors from the newest on, to a quiet mirror's only one.
 */
const ofMirror = (r: string) => `${r}.mirror_id >= m.mirror_id and ${r}.mirror_id <= m.mirror_id`;

/** Membership is a meaning, not a table: what is accepted and not folded yet counts. */
export const MIRROR_SIGNS = `
  with unfolded as (
    select r.target_id, sum(case b.action when 'upsert' then b.added when 'remove' then -b.accepted else 0 end) as more
    from retl.batch b join retl.run r using (run_id) where b.state = 'settled' and not b.folded group by r.target_id),
  completed as (
    select t.mirror_id, max(r.closed_at) as at from retl.target t
    join retl.generation g on g.target_id = t.target_id and g.state = 'promoted' join retl.run r on r.run_id = g.run_id
    group by t.mirror_id)
  select m.name as mirror, coalesce(t.held, 0) + coalesce(f.more, 0) as held,
    d.state, case when d.state not in ('running', 'cancelled', 'failed') then ${seconds('d.since')} else 0 end as waits,
    ${seconds('l.opened_at')} as age, ${seconds('coalesce(c.at, m.created_at)')} as since_completed,
    (select p.closing from retl.run p where ${ofMirror('p')} and p.closing is not null
      order by p.mirror_id desc, p.run_id desc limit 1) as last_outcome,
    b.unknown, b.staged, ${seconds('b.unknown_since')} as unknown_age, ${seconds('b.staged_since')} as staged_age
  from retl.mirror m
  left join lateral (
    select r.* from retl.run r where ${ofMirror('r')} order by r.mirror_id desc, r.run_id desc limit 1) l on true
  -- A target that its newest run has left unowned may be another mirror's by now.
  left join retl.target t on t.target_id = l.target_id and t.mirror_id = m.mirror_id
  left join unfolded f on f.target_id = t.target_id
  left join completed c on c.mirror_id = m.mirror_id
  cross join lateral (
    select count(*) filter (where b.state = 'unknown') as unknown, count(*) filter (where b.state = 'staged') as staged,
      min(b.sent_at) filter (where b.state = 'unknown') as unknown_since,
      min(b.staged_at) filter (where b.state = 'staged') as staged_since
    from retl.batch b
    where b.run_id = l.run_id and l.closing is null and b.state in ('unknown', 'staged')) b
  left join ${doingOf('l')} d on true
  order by m.name`;

const HEAD = 'select position, earliest from retl.log_head';

/** @throws JournalError, after some seconds at most */
export function readVitalSigns(journal: pg.Pool): Promise<VitalSigns> {
  return consistently(journal, async (db) => {
    await run(db, `set local statement_timeout = '${LOOK_WITHIN}'`);
    const head = one(await run(db, HEAD));
    const mirrors = await run(db, MIRROR_SIGNS);
    return {
      head: logPosition(big(head, 'position')),
      earliest: logPosition(big(head, 'earliest')),
      mirrors: mirrors.map(decodeSigns),
    };
  });
}

function decodeSigns(row: Row): MirrorSigns {
  const state = textOrNull(row, 'state') as OpenState | null;
  return {
    mirror: text(row, 'mirror'),
    held: number(row, 'held'),
    open: state === null ? null : { state, age: number(row, 'age'), waits: number(row, 'waits') },
    sinceCompleted: number(row, 'since_completed'),
    lastOutcome: textOrNull(row, 'last_outcome') as Closing | null,
    unknown: { batches: number(row, 'unknown'), age: number(row, 'unknown_age') },
    staged: { batches: number(row, 'staged'), age: number(row, 'staged_age') },
  };
}
