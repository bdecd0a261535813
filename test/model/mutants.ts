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
  /** A constraint of retl.batch that would stop it. */
  readonly without?: string;
  /** The rule that it breaks, in the model's words. */
  readonly breaks: RegExp;
  /** A history that shows it; the journal as it is comes through. */
  readonly plan: HistoryPlan;
}

/** Puts a mutant in the place of its functions. @throws Error where one no longer reads so */
export async function mutate(owner: pg.Pool, { edits, without }: Mutant): Promise<void> {
  if (without !== undefined) await owner.query(`alter table retl.batch drop constraint ${without}`);
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

const FOUND_SENDING_AGAIN: Edit = {
  function: 'begin_attempt',
  from: "set state = 'unknown', reason = 'found-sending'",
  to: "set state = 'prepared'",
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
    edits: [FOUND_SENDING_AGAIN],
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
  {
    name: 'an opening that is found in sending is begun again',
    edits: [FOUND_SENDING_AGAIN],
    breaks: /rule 10: init .* was asked for twice/,
    plan: { ...PLAN, faults: [{ after: 0, at: 'init is answered', kind: 'kill' }] },
  },
  {
    name: 'a staged batch is taken for one that was never sent',
    edits: [{ function: 'mark_staged', from: "set state = 'staged'", to: "set state = 'prepared'" }],
    breaks: /rule 5: a second job was begun/,
    plan: { ...PLAN, asynchronous: true },
  },
  {
    name: 'a pending finish is taken for an accepted one',
    edits: [
      {
        function: 'mark_staged',
        from: 'next_poll_at = retl.next_poll(p_next_poll_ms) where batch_id = p_batch;',
        to: `next_poll_at = retl.next_poll(p_next_poll_ms) where batch_id = p_batch;
  if b.action = 'finish' then
    perform retl.settle_step(p_run, p_epoch, p_batch, p_receipt, null, null);
  end if;`,
      },
    ],
    breaks: /rule 10: promoted before/,
    plan: { ...PLAN, slow: true },
  },
  {
    name: 'what is found in sending is taken for unsent, and the run is ended over it',
    edits: [
      {
        function: 'begin_attempt',
        from: "set state = 'unknown', reason = 'found-sending'",
        to: "set state = 'not-applied', reason = 'found-sending', retry_at = clock_timestamp()",
      },
    ],
    breaks: /rule 10: aborted while something is under way/,
    plan: {
      ...PLAN,
      asynchronous: true,
      faults: [
        { after: 0, at: 'upsert is answered', kind: 'kill' },
        { after: 0, kind: 'abort' },
      ],
    },
  },
  {
    name: 'a batch begins again where the one before it began',
    edits: [
      {
        function: 'prepare_batches',
        from: 'coalesce(max(upper(operations)),',
        to: 'coalesce(max(lower(operations)),',
      },
      { function: 'insert_batches', from: 'p_last[i] - v_from < r.max_batch_rows', to: 'true' },
    ],
    without: 'batch_operation_once',
    breaks: /rule 4: an operation is in two requests/,
    plan: { ...PLAN, runs: [{ a: '1', b: '1' }] },
  },
  {
    name: 'the limits of removals are not looked at',
    edits: [
      {
        function: 'beyond',
        from: "when r.planned_removed > r.max_removals then 'max-removals'",
        to: "when false then 'max-removals'",
      },
    ],
    breaks: /nobody was asked/,
    plan: { ...PLAN, limit: 0, runs: [{ a: '1', b: '1' }, { a: '1' }] },
  },
  {
    name: 'a position of the log is left out',
    edits: [{ function: 'append_entry', from: 'h.position + 1', to: 'h.position + 2' }],
    breaks: /the log has a gap/,
    plan: PLAN,
  },
  {
    name: 'an entry is bound to another one than the one before it',
    edits: [{ function: 'append_entry', from: 'link = e.entry_hash', to: 'link = sha256(e.entry_hash)' }],
    breaks: /does not follow from the one before/,
    plan: PLAN,
  },
  {
    name: 'whoever is removed stays in the membership',
    edits: [
      {
        function: 'fold',
        from: 'and m.identity_hash = o.identity_hash %s',
        to: 'and m.identity_hash = o.identity_hash and false %s',
      },
    ],
    breaks: /the membership is not what the log says/,
    plan: { ...PLAN, runs: [{ a: '1', b: '1' }, { a: '1' }] },
  },
  {
    name: 'whoever is wanted is removed in the place of whoever is not',
    edits: [
      {
        function: 'collect_removals',
        from: 'where not exists (select from retl.generation_%s g',
        to: 'where exists (select from retl.generation_%s g',
      },
    ],
    breaks: /a member of the sealed set was removed/,
    plan: { ...PLAN, runs: [{ a: '1', b: '1' }, { a: '1' }] },
  },
  {
    name: 'what was accepted too long ago is left alone',
    edits: [{ function: 'plan', from: 'case when v_stale is not null then', to: 'case when false then' }],
    breaks: /not every member was sent/,
    plan: { ...PLAN, refreshes: true, runs: [{ a: '1' }, { a: '1' }] },
  },
  {
    name: 'a run that was taken over is called the execution’s own when it asks again',
    edits: [
      {
        function: 'resume_of',
        from: "when v_steps[1] <> 'admit' then",
        to: 'when cardinality(v_steps) > 1 then',
      },
    ],
    breaks: /holds a run that it was never told of/,
    plan: {
      ...PLAN,
      faults: [
        { after: 0, at: 'upsert is answered', kind: 'cancel' },
        { after: 0, at: 'after select retl.admit(', kind: 'kill' },
      ],
      runs: [{ a: '1' }, { b: '1' }],
    },
  },
];
