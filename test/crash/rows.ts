/**
 * The recovery matrix, row by row: where a worker dies (design.md section 6). A row is one line: a statement of the journal,
 * which its server never gets or whose answer never comes back, or a step of the destination, which it never begins or whose
 * answer never comes back; and what has become of the request that was on its way.
 */

import type { LedgerHold, LedgerStep } from '../support/ledger.ts';
import type { Hold } from '../support/system-journal-proxy.ts';

/** What the destination has done of the request that the journal finds in `sending`; null: it finds none. */
export type OnItsWay = 'applied' | 'absent' | null;

export type Place =
  | { readonly kind: 'journal'; readonly hold: Hold }
  | { readonly kind: 'ledger'; readonly hold: LedgerHold }
  /** It waits for an answer, and no activity is under way. */
  | { readonly kind: 'parked' };

export interface Row {
  readonly name: string;
  readonly at: Place;
  readonly onItsWay: OnItsWay;
  /**
   * `first`: six additions; `removals`: two are removed and one is changed; `busy`: the first upload is turned away; `parked`:
   * more are removed than the limits allow, and somebody approves of it; `later`: requests are taken for later; `replace`: a set
   * of four, one of them changed, takes the place of six; `slow`: the opening and the finish are taken for later;
   * `publish`: as `replace`, and nothing is seen before the finish; `tolerated`, `held`: one is refused, and the run completes
   * without it, or ends and leaves it to the next; `refresh`: nobody has changed, and all are sent again.
   */
  readonly scene:
    | 'first'
    | 'removals'
    | 'busy'
    | 'parked'
    | 'later'
    | 'slow'
    | 'replace'
    | 'publish'
    | 'tolerated'
    | 'held'
    | 'refresh';
  /**
   * What befalls the worker there, or also its workflow: `terminate`: it is terminated and started again; `freeze`: the
   * worker stands still past its heartbeat and goes on when another one has finished its work.
   */
  readonly fate: 'kill' | 'terminate' | 'freeze';
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
    fate: 'kill',
    ...rest,
    name,
    at: { kind: 'journal', hold: { statement, how, nth } },
  };
}

function request(name: string, step: LedgerStep, when: LedgerHold['when'], options: Options = {}): Row {
  const onItsWay = when === 'applied' && step !== 'uploads' ? 'applied' : 'absent';
  return {
    scene: 'first',
    fate: 'kill',
    onItsWay,
    ...options,
    name,
    at: { kind: 'ledger', hold: { step, when } },
  };
}

/** The same place, and its workflow is terminated and started again. */
function terminated(row: Row): Row {
  return { ...row, name: `${row.name}; terminated`, fate: 'terminate' };
}

function frozen(row: Row): Row {
  return { ...row, name: `${row.name}; frozen`, fate: 'freeze' };
}

/** Steps are journaled one by one, the opening of the session first, then the finish. */
const [INIT, FINISH] = [{ nth: 1 }, { nth: 2 }];
const STEP_SENDING = 'retl.mark_sending($1,$2,$3,$4)';
const absent = { onItsWay: 'absent' } as const;
const applied = { onItsWay: 'applied' } as const;
const removals = { scene: 'removals' } as const;
const later = { scene: 'later' } as const;
const slow = { scene: 'slow' } as const;
const replace = { scene: 'replace' } as const;
const publish = { scene: 'publish' } as const;
const tolerated = { scene: 'tolerated' } as const;
const held = { scene: 'held' } as const;
const refresh = { scene: 'refresh' } as const;
const parked = { scene: 'parked' } as const;

const PARKED: Row = {
  name: 'the run is parked',
  at: { kind: 'parked' },
  onItsWay: null,
  scene: 'parked',
  fate: 'kill',
};

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
  request('the job is taken', 'upload', 'applied', later),
  unseen('the job is recorded', 'retl.mark_staged(', { ...later, ...applied, nth: 2 }),
  unanswered('the job is recorded', 'retl.mark_staged(', { ...later, nth: 2 }),
  request('the job is asked about', 'job', 'received', { ...later, onItsWay: null }),
  request('the job is done', 'job', 'applied', { ...later, onItsWay: null }),
  unseen('the receipt of a job', 'retl.settle_batch(', later),
  unanswered('the receipt of a job', 'retl.settle_batch(', later),
  request('the opening is taken for later', 'sessions', 'applied', slow),
  unseen('the pending opening is recorded', 'retl.mark_staged(', { ...slow, ...applied }),
  unanswered('the pending opening is recorded', 'retl.mark_staged(', slow),
  request('the pending opening is asked about', 'slow session', 'received', { ...slow, onItsWay: null }),
  request('the pending opening is done', 'slow session', 'applied', { ...slow, onItsWay: null }),
  unanswered('the receipt of a pending opening', 'retl.settle_step(', { ...slow, ...INIT }),
  request('the finish is taken for later', 'finish', 'applied', slow),
  unseen('the pending finish is recorded', 'retl.mark_staged(', { ...slow, ...applied, ...FINISH }),
  unanswered('the pending finish is recorded', 'retl.mark_staged(', { ...slow, ...FINISH }),
  request('the pending finish is asked about', 'slow finish', 'received', { ...slow, onItsWay: null }),
  request('the pending finish is done', 'slow finish', 'applied', { ...slow, onItsWay: null }),
  unseen('the receipt of a pending finish', 'retl.settle_step(', { ...slow, ...FINISH }),
  unanswered('the receipt of a pending finish', 'retl.settle_step(', { ...slow, ...FINISH }),
  request('the set is replaced', 'finish', 'applied', replace),
  unseen('the receipt of a replacement', 'retl.settle_step(', { ...replace, ...FINISH, ...applied }),
  unseen('the replacement is confirmed', 'retl.confirm_replacement(', replace),
  unanswered('the replacement is confirmed', 'retl.confirm_replacement(', replace),
  unseen('whom it has dropped is recorded', 'retl.record_replaced(', replace),
  unanswered('whom it has dropped is recorded', 'retl.record_replaced(', replace),
  unseen('the promotion of a replacement', 'retl.promote(', replace),
  request('the set is published', 'finish', 'applied', publish),
  unseen('the receipt of a publication', 'retl.settle_step(', { ...publish, ...FINISH, ...applied }),
  unanswered('the receipt of a publication', 'retl.settle_step(', { ...publish, ...FINISH }),
  unseen('the publication is confirmed', 'retl.confirm_replacement(', publish),
  unanswered('the publication is confirmed', 'retl.confirm_replacement(', publish),
  unseen('its uploads become true', 'retl.apply_uploads(', publish),
  unanswered('its uploads become true', 'retl.apply_uploads(', publish),
  unseen('whom it no longer has is recorded', 'retl.record_replaced(', publish),
  unanswered('whom it no longer has is recorded', 'retl.record_replaced(', publish),
  unseen('the promotion of a publication', 'retl.promote(', publish),
  unanswered('the promotion of a publication', 'retl.promote(', publish),
  unanswered('a tolerated rejection is recorded', 'retl.settle_batch(', { ...tolerated, nth: 2 }),
  unanswered('the removals are planned in spite of it', 'retl.begin_removals(', tolerated),
  unseen('it is promoted without the one', 'retl.promote(', tolerated),
  unanswered('it is promoted without the one', 'retl.promote(', tolerated),
  unanswered('a rejection to hold for is recorded', 'retl.settle_batch(', { ...held, nth: 2 }),
  unseen('the held run is closed', 'retl.close_run(', held),
  unanswered('the held run is closed', 'retl.close_run(', held),
  request('a member is sent again', 'upload', 'applied', refresh),
  unseen('the receipt of one sent again', 'retl.settle_batch(', { ...refresh, ...applied, nth: 2 }),
  unanswered('the receipt of one sent again', 'retl.settle_batch(', { ...refresh, nth: 2 }),
  unseen('the run is parked', 'retl.guard(', parked),
  unanswered('the run is parked', 'retl.guard(', parked),
  PARKED,
  terminated(PARKED),
  terminated(request('the session is open', 'sessions', 'applied')),
  terminated(unanswered('the candidate is loaded', 'retl.loaded(')),
  terminated(unanswered('a batch is prepared and marked as sending', 'retl.prepare_batches(', absent)),
  terminated(request('the upload is carried out', 'upload', 'applied')),
  terminated(unanswered('the receipt', 'retl.settle_batch(', { nth: 2 })),
  terminated(unseen('the receipt of a removal', 'retl.settle_batch(', { ...removals, ...applied, nth: 2 })),
  terminated(request('the finish is done', 'finish', 'applied')),
  terminated(unseen('the promotion', 'retl.promote(')),
  // Where a request could still leave, the window remains that the README names (test/e2e/frozen-worker.e2e.test.ts).
  frozen(unseen('the attempt at the opening', 'retl.prepare_step(', INIT)),
  frozen(unseen('the receipt of the opening', 'retl.settle_step(', { ...INIT, ...applied })),
  frozen(unanswered('the candidate is created', 'retl.create_candidate(')),
  frozen(unseen('the seal', 'retl.seal(')),
  frozen(unseen('a batch is prepared', 'retl.prepare_batches(')),
  frozen(unseen('the receipt', 'retl.settle_batch(', { ...applied, nth: 2 })),
  frozen(unanswered('the receipt', 'retl.settle_batch(', { nth: 2 })),
  frozen(unseen('the receipt of a removal', 'retl.settle_batch(', { ...removals, ...applied, nth: 2 })),
  frozen(unseen('the receipt of the finish', 'retl.settle_step(', { ...FINISH, ...applied })),
  frozen(unseen('the promotion', 'retl.promote(')),
  frozen(unseen('the pending finish is recorded', 'retl.mark_staged(', { ...slow, ...applied, ...FINISH })),
  frozen(unseen('its uploads become true', 'retl.apply_uploads(', publish)),
  frozen(unseen('whom it no longer has is recorded', 'retl.record_replaced(', publish)),
  frozen(unanswered('a tolerated rejection is recorded', 'retl.settle_batch(', { ...tolerated, nth: 2 })),
  // Nobody hears of a dead admission before its time is over: they come last, so that nobody waits meanwhile.
  unseen('the admission', 'retl.admit('),
  unanswered('the admission', 'retl.admit('),
];
