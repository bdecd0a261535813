/** Faults put into the journal's functions on purpose: the model must find each of them. */

import type pg from 'pg';
import type { HistoryPlan } from './history.ts';

interface Edit {
  readonly function: string;
  readonly from: string;
  readonly to: string;
}

export interface Mutant {
  readonly name: string;
  readonly edits: readonly Edit[];
  /** The rule that it breaks, in the model's words. */
  readonly breaks: RegExp;
  /** A history that shows it; the journal as it is comes through. */
  readonly plan: HistoryPlan;
}

/** Puts a mutant in the place of its functions. @throws Error where one no longer reads so */
export async function mutate(owner: pg.Pool, { edits }: Pick<Mutant, 'edits'>): Promise<void> {
  for (const edit of edits) {
    const { rows } = await owner.query<{ text: string }>(
      `select pg_get_functiondef(p.oid) as text from pg_proc p
       where p.pronamespace = 'retl'::regnamespace and p.proname = $1`,
      [edit.function],
    );
    const text = rows[0]?.text ?? '';
    if (!text.includes(edit.from)) throw new Error(`retl.${edit.function} does not say: ${edit.from}`);
    await owner.query(text.replace(edit.from, () => edit.to));
  }
}

const PLAN: HistoryPlan = {
  kind: 'manual',
  asynchronous: false,
  rows: 1,
  inFlight: 1,
  faults: [],
  answers: [],
  decisions: [],
  thawAfter: 0,
  runs: [{ a: '1' }],
};

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'an older attempt is not fenced',
    edits: [
      {
        function: 'lock_run',
        from: 'if r.epoch is distinct from p_epoch or r.closing is not null then',
        to: 'if false then',
      },
    ],
    breaks: /a closed run has changed/,
    plan: {
      ...PLAN,
      runs: [{ a: '1', b: '1' }],
      thawAfter: 1_000,
      faults: [
        { after: 1, at: 'before with prepared', kind: 'freeze' },
        { after: 0, kind: 'abort' },
      ],
    },
  },
  {
    name: 'what is found in sending is sent again',
    edits: [
      {
        function: 'begin_attempt',
        from: "set state = 'unknown', reason = 'found-sending'",
        to: "set state = 'prepared'",
      },
    ],
    breaks: /was sent twice/,
    plan: { ...PLAN, faults: [{ after: 0, at: 'upsert is answered', kind: 'kill' }] },
  },
  {
    name: 'absence is believed at once',
    edits: [
      {
        function: 'deadline',
        from: 'return clock_timestamp() + p_ms',
        to: 'return clock_timestamp() + 0 * p_ms',
      },
    ],
    breaks: /took effect twice/,
    plan: {
      ...PLAN,
      kind: 'lookup',
      thawAfter: 1_000,
      faults: [{ after: 0, at: 'upsert leaves', kind: 'freeze' }],
    },
  },
  {
    name: 'the refusal of a second copy is taken for proof about the first',
    edits: [
      {
        function: 'mark_not_applied',
        from: "if b.state in ('sending', 'staged') and b.resends > 0 then",
        to: 'if false then',
      },
    ],
    breaks: /took effect twice/,
    plan: {
      ...PLAN,
      kind: 'idempotent',
      answers: [{ kind: 'ok' }, { kind: 'lost', applied: true }, { kind: 'later' }],
    },
  },
  {
    name: 'a rejection is taken for an acceptance',
    edits: [
      {
        function: 'settle_batch',
        from: 'v_rejected integer := coalesce(cardinality(p_rejected), 0);',
        to: 'v_rejected integer := 0;',
      },
    ],
    breaks: /rule 2: the log says more/,
    plan: { ...PLAN, answers: [{ kind: 'ok' }, { kind: 'reject', at: 0 }] },
  },
  {
    name: 'changed members are not planned',
    edits: [{ function: 'plan', from: 'else v_changed + v_refreshed end', to: 'else 0 end' }],
    breaks: /rule 1: finished with another set/,
    plan: { ...PLAN, runs: [{ a: '1' }, { a: '2' }] },
  },
  {
    name: 'any number of rejections is tolerated',
    edits: [{ function: 'rejected_in', from: 'f.members <= r.max_rejections', to: 'true' }],
    breaks: /rule 5: a run went on/,
    plan: {
      ...PLAN,
      tolerated: 1,
      answers: [{ kind: 'ok' }, { kind: 'reject', at: 0 }, { kind: 'reject', at: 0 }],
      runs: [{ a: '1', b: '1', c: '1' }],
    },
  },
  {
    name: 'removals are planned while additions are open',
    edits: [
      {
        function: 'guard',
        from: "update retl.run set phase = 'additions' where run_id = p_run;",
        to: `update retl.run set phase = 'additions' where run_id = p_run;
      perform retl.begin_removals(p_run, p_epoch, 1000000);`,
      },
      { function: 'require_all_accepted', from: 'if v_accepted <> p_planned or', to: 'if false and' },
    ],
    breaks: /rule 1: /,
    plan: { ...PLAN, runs: [{ a: '1', b: '1' }, { a: '2' }] },
  },
];
