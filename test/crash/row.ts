/**
 * What a row of the recovery matrix is (design.md section 6): where something happens, and what. The place is a statement of
 * the journal, which its server never gets or whose answer never comes back, or a step of the destination, which it never
 * begins or whose answer never comes back; with it goes what has become of the request that was on its way.
 */

import type { LedgerHold, LedgerStep } from '../support/ledger.ts';
import type { RecoveryKind } from '../support/ledger-scene.ts';
import type { Hold } from '../support/system-journal-proxy.ts';

/** What the destination has done of the request that the journal finds in `sending`; null: it finds none. */
export type OnItsWay = 'applied' | 'absent' | null;

export type Place =
  | { readonly kind: 'journal'; readonly hold: Hold }
  | { readonly kind: 'ledger'; readonly hold: LedgerHold }
  /** It waits for an answer, and no activity is under way. */
  | { readonly kind: 'parked' };

/**
 * What runs into a ledger are about. `first`: six additions; `removals`: two are removed and one is changed; `busy`: the first upload
 * is turned away; `parked`: more are removed than the limits allow, and somebody is asked; `later`: requests are taken for later;
 * `replace`: a set of four, one of them changed, takes the place of six; `slow`: the opening and the finish are taken for later;
 * `publish`: as `replace`, and nothing is seen before the finish; `tolerated`, `held`: one is refused, and the run completes
 * without it, or ends and leaves it to the next; `refresh`: nobody has changed, and all are sent again; `resumed`: a parked run was
 * cancelled, and another execution takes it over; `stale`: an unsealed one was terminated, and another execution finds it.
 */
export type LedgerKind =
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
  | 'refresh'
  | 'resumed'
  | 'stale';

/**
 * Shipped adapters, each with a removal and a change after six additions; `jobs`: `http`, asynchronous; `swap`: a table replaced;
 * `rename`: another table in its place; `store`: a set published in an object store.
 */
export type RealKind = 'http' | 'jobs' | 'org' | 'table' | 'swap' | 'rename' | 'store';

/**
 * What befalls the worker there, or those around it. `kill`: SIGKILL; `terminate`: its workflow is terminated, too, and started
 * again; `freeze`: it stands still past its heartbeat and goes on when another one has finished its work; `cut`: Temporal
 * hears no more of it, so that another one takes over, and it goes on beside it; `journal`, `temporal`: that server restarts.
 */
export type Fate = 'kill' | 'terminate' | 'freeze' | 'cut' | 'journal' | 'temporal';

/** What a person says of the parked run, which the journal is to hear where the worker stands. */
export type Said = 'approve' | 'reject' | 'cancel' | 'abort';

export interface Row {
  readonly name: string;
  readonly at: Place;
  readonly onItsWay: OnItsWay;
  readonly scene: LedgerKind | RealKind;
  readonly fate: Fate;
  readonly said: Said | null;
  /** Kinds of destinations that it is played with. */
  readonly kinds: readonly RecoveryKind[];
}

export const KINDS: readonly RecoveryKind[] = ['idempotent', 'lookup', 'manual'];

export type Options = Partial<Pick<Row, 'onItsWay' | 'scene' | 'said' | 'kinds'>> & { readonly nth?: number };

const PLAIN = { onItsWay: null, scene: 'first', fate: 'kill', said: null, kinds: KINDS } as const;

export function unseen(name: string, statement: string, options: Options = {}): Row {
  return journal(`before ${name}`, statement, 'unseen', options);
}

export function unanswered(name: string, statement: string, options: Options = {}): Row {
  return journal(`after ${name}`, statement, 'unanswered', options);
}

function journal(name: string, statement: string, how: Hold['how'], { nth = 1, ...rest }: Options): Row {
  return {
    ...PLAIN,
    ...rest,
    name,
    at: { kind: 'journal', hold: { statement, how, nth } },
  };
}

export function request(
  name: string,
  step: LedgerStep,
  when: LedgerHold['when'],
  { nth = 1, ...rest }: Options = {},
): Row {
  const onItsWay = when === 'applied' && step !== 'uploads' ? 'applied' : 'absent';
  return { ...PLAIN, onItsWay, ...rest, name, at: { kind: 'ledger', hold: { step, when, nth } } };
}

/** It waits for an answer, and no activity is under way. */
export const PARKED: Row = { ...PLAIN, name: 'the run is parked', at: { kind: 'parked' }, scene: 'parked' };

const WORDS: { readonly [F in Exclude<Fate, 'kill'>]: string } = {
  terminate: 'terminated',
  freeze: 'frozen',
  cut: 'cut off from Temporal',
  journal: 'the journal restarts',
  temporal: 'Temporal restarts',
};

/** The same place, and something else happens there. */
export function fated(fate: Exclude<Fate, 'kill'>, row: Row): Row {
  return { ...row, name: `${row.name}; ${WORDS[fate]}`, fate };
}
