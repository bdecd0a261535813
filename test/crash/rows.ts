/**
 * The recovery matrix, row by row: where a worker dies (design.md section 6). A row is one line: a statement of the journal,
 * which its server never gets or whose answer never comes back, or a step of the destination, which it never begins or whose
 * answer never comes back; and what has become of the request that was on its way.
 */

import type { LedgerHold, LedgerStep } from '../support/ledger.ts';
import type { Hold } from '../support/system-journal-proxy.ts';

/** What the destination has done of the request that the journal finds in `sending`; null: it finds none. */
export type OnItsWay = 'applied' | 'absent' | null;

export interface Row {
  readonly name: string;
  readonly at:
    | { readonly kind: 'journal'; readonly hold: Hold }
    | { readonly kind: 'ledger'; readonly hold: LedgerHold };
  readonly onItsWay: OnItsWay;
  /** `first`: six additions; `removals`: two are removed and one is changed; `busy`: the first upload is turned away. */
  readonly scene: 'first' | 'removals' | 'busy';
}

type Options = Partial<Pick<Row, 'onItsWay' | 'scene'>> & { readonly nth?: number };

function unseen(name: string, statement: string, options: Options = {}): Row {
  return journal(`before ${name}`, statement, 'unseen', options);
}

function unanswered(name: string, statement: string, options: Options = {}): Row {
  return journal(`after ${name}`, statement, 'unanswered', options);
}

function journal(name: string, statement: string, how: Hold['how'], { nth = 1, ...rest }: Options): Row {
  return {
    onItsWay: null,
    scene: 'first',
    ...rest,
    name,
    at: { kind: 'journal', hold: { statement, how, nth } },
  };
}

function request(name: string, step: LedgerStep, when: LedgerHold['when'], options: Options = {}): Row {
  const onItsWay = when === 'applied' && step !== 'uploads' ? 'applied' : 'absent';
  return { scene: 'first', onItsWay, ...options, name, at: { kind: 'ledger', hold: { step, when } } };
}

/** Steps are journaled one by one, the opening of the session first, then the finish. */
const [INIT, FINISH] = [{ nth: 1 }, { nth: 2 }];
const STEP_SENDING = 'retl.mark_sending($1,$2,$3,$4)';
const absent = { onItsWay: 'absent' } as const;
const applied = { onItsWay: 'applied' } as const;
const removals = { scene: 'removals' } as const;

export const ROWS: readonly Row[] = [
  unseen('the opening is prepared', 'retl.prepare_step(', INIT),
  unanswered('the opening is prepared', 'retl.prepare_step(', INIT),
  unanswered('the opening is marked as sending', STEP_SENDING, { ...INIT, ...absent }),
  request('the opening has arrived', 'sessions', 'received'),
  request('the session is open', 'sessions', 'applied'),
  unseen('the receipt of the opening', 'retl.settle_step(', { ...INIT, ...applied }),
  unanswered('the receipt of the opening', 'retl.settle_step(', INIT),
  unanswered('the candidate is created', 'retl.create_candidate('),
  unanswered('the candidate is loaded, uncommitted', 'retl.loaded('),
  unseen('the seal', 'retl.seal('),
  unanswered('the seal', 'retl.seal('),
  unanswered('the plan', 'retl.plan('),
  unanswered('the guard', 'retl.guard('),
  unseen('a batch is prepared', 'retl.prepare_batches('),
  unanswered('a batch is prepared and marked as sending', 'retl.prepare_batches(', absent),
  request('the upload is announced, not heard', 'uploads', 'received'),
  request('the upload is announced', 'uploads', 'applied'),
  unseen('the id of the upload is saved', 'retl.record_progress(', absent),
  unanswered('the id of the upload is saved', 'retl.record_progress(', absent),
  request('the upload has arrived', 'upload', 'received'),
  request('the upload is carried out', 'upload', 'applied'),
  // Of the second batch: while the receipt of the first is on its way, the next request may leave already.
  unseen('the receipt', 'retl.settle_batch(', { ...applied, nth: 2 }),
  unanswered('the receipt', 'retl.settle_batch(', { nth: 2 }),
  unseen('a refusal for now is recorded', 'retl.mark_not_applied(', { ...absent, scene: 'busy' }),
  unanswered('a refusal for now is recorded', 'retl.mark_not_applied(', { scene: 'busy' }),
  unanswered('it is prepared again', 'retl.retry_batch(', { scene: 'busy' }),
  unseen('the removals are planned', 'retl.begin_removals(', removals),
  unanswered('the removals are planned', 'retl.begin_removals(', removals),
  unanswered('a removal is prepared and marked as sending', 'retl.prepare_batches(', {
    ...removals,
    ...absent,
    nth: 2,
  }),
  unseen('the receipt of a removal', 'retl.settle_batch(', { ...removals, ...applied, nth: 2 }),
  unanswered('the receipt of a removal', 'retl.settle_batch(', { ...removals, nth: 2 }),
  unseen('the finish begins', 'retl.begin_finish('),
  unanswered('the finish begins', 'retl.begin_finish('),
  unanswered('the finish is prepared', 'retl.prepare_step(', FINISH),
  unanswered('the finish is marked as sending', STEP_SENDING, { ...FINISH, ...absent }),
  request('the finish has arrived', 'finish', 'received'),
  request('the finish is done', 'finish', 'applied'),
  unseen('the receipt of the finish', 'retl.settle_step(', { ...FINISH, ...applied }),
  unanswered('the receipt of the finish', 'retl.settle_step(', FINISH),
  unanswered('accepted batches are folded', 'retl.fold(', { nth: 2 }),
  unseen('the promotion', 'retl.promote('),
  unanswered('the promotion', 'retl.promote('),
  unseen('the pruning', 'retl.prune('),
  unanswered('the pruning', 'retl.prune('),
  // Nobody hears of a dead admission before its time is over: they come last, so that nobody waits meanwhile.
  unseen('the admission', 'retl.admit('),
  unanswered('the admission', 'retl.admit('),
];
