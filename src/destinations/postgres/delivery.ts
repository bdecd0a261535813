/**
 * One request in one transaction. The whole set is tried first. Where the server refuses the data of some row, or a
 * trigger discards one, the transaction is rolled back and a second one finds the rows in question by halving, each
 * half under a savepoint; it commits the good ones and names the bad ones, so that neighbours are neither blamed nor
 * lost. Every transaction checks the fence before it writes (fence.ts; design.md, rule 9).
 */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import type { Action, BatchOutcome, BatchRequest, OperationOutcome } from '../port.ts';
import type { Fence, FenceState } from './fence.ts';
import { nameFault } from './identifier.ts';
import { bodyOf, type ReadRequest, type Rejection, type Row, readRequest, rejected } from './request.ts';
import { type Verdict, verdictBeforeCommit } from './sqlstate.ts';
import {
  type Binding,
  removeStatement,
  type Target,
  upsertStatement,
  type WriteStatement,
} from './statements.ts';
import { columnNamed } from './table.ts';
import type { Database, TransactionEnd } from './transaction.ts';

/** Most statements that the search for bad rows may take; past it the request is refused as a whole. */
const MAX_SEARCH = 2_000;

/** Rows that one statement writes. */
interface Part {
  readonly statement: WriteStatement;
  readonly rows: readonly Row[];
  readonly body: string;
}

/** Rejected rows, by index; the others are written. */
type Rejections = ReadonlyMap<number, Rejection>;

type Written =
  | { readonly kind: 'written'; readonly rejections: Rejections }
  | { readonly kind: 'fence'; readonly state: Exclude<FenceState, { kind: 'held' }> }
  /** All was written, too late to be committed. */
  | { readonly kind: 'late' }
  /** Some row was not written: its data, or a trigger. */
  | { readonly kind: 'incomplete'; readonly code: string; readonly reason: string };

export interface Delivery {
  readonly database: Database;
  readonly fence: Fence;
  readonly target: Target;
  /** Column of a field. */
  readonly columnOf: (field: string) => string;
  readonly signal: AbortSignal;
  /** Whether an earlier copy of the request may have been committed: then a row that is refused may stand as asked all the same. */
  readonly again: boolean;
  /** Whether the request has taken so long that nothing of it may be committed any more. */
  readonly tooLate: () => boolean;
}

export async function deliver(
  delivery: Delivery,
  action: Action,
  request: BatchRequest,
): Promise<BatchOutcome> {
  const read = readRequest(
    request,
    delivery.target.identity.map(({ field }) => field),
  );
  const parts = partsOf(delivery, action, read);
  if (typeof parts === 'string') return { kind: 'misconfigured', code: parts, reason: FIELD_REASONS[parts] };
  const first = await attempt(delivery, (client) => writeWhole(client, parts));
  if (!isDataFault(first)) return outcomeOf(first, request, read.rejected);
  const second = await attempt(delivery, (client) => searchRows(client, parts, delivery.again));
  return outcomeOf(second, request, read.rejected);
}

type FieldFault = 'unknown-column' | 'remove-fields' | 'field-name';

const FIELD_REASONS: Readonly<Record<FieldFault, string>> = {
  'unknown-column': 'A field of the payload has no column in the table.',
  'remove-fields': 'A removal has fields beside those of the identity.',
  'field-name':
    'A field name is empty or longer than 63 bytes: the server would cut it and find no value under it.',
};

function partsOf(delivery: Delivery, action: Action, read: ReadRequest): readonly Part[] | FieldFault {
  const { target } = delivery;
  const parts: Part[] = [];
  for (const { fields, rows, body } of read.shapes) {
    if (fields.some((field) => nameFault(field) !== null)) return 'field-name';
    const rest = fields.filter((field) => !target.identity.some((bound) => bound.field === field));
    if (action === 'remove' && rest.length > 0) return 'remove-fields';
    const payload: Binding[] = [];
    for (const field of rest) {
      const column = columnNamed(target.table, delivery.columnOf(field));
      if (column === undefined) return 'unknown-column';
      payload.push({ field, column });
    }
    const statement = action === 'upsert' ? upsertStatement(target, payload) : removeStatement(target);
    parts.push({ statement, rows, body });
  }
  return parts;
}

async function attempt(
  { database, fence, signal, tooLate }: Delivery,
  write: (client: PoolClient) => Promise<Written>,
): Promise<TransactionEnd<Written>> {
  return database.transact<Written>(signal, async (client) => {
    const state = await fence.check(client);
    if (state.kind !== 'held') return { commit: false, value: { kind: 'fence', state } };
    const value = await write(client);
    if (value.kind === 'written' && tooLate()) return { commit: false, value: { kind: 'late' } };
    return { commit: value.kind === 'written', value };
  });
}

function isDataFault(end: TransactionEnd<Written>): boolean {
  if (end.kind === 'failed') return verdictBeforeCommit(end.error).kind === 'data';
  return end.kind === 'rolled-back' && end.value.kind === 'incomplete';
}

/** Every part at once. */
async function writeWhole(client: PoolClient, parts: readonly Part[]): Promise<Written> {
  for (const { statement, rows, body } of parts) {
    if ((await apply(client, statement, body)) !== rows.length) return DISCARDED;
  }
  return { kind: 'written', rejections: new Map() };
}

const SILENT_NOOP = 'A trigger or a rule of the table discarded the row.';
const DISCARDED: Written = { kind: 'incomplete', code: 'silent-noop', reason: SILENT_NOOP };

/** Rows that stand as asked after the statement. */
async function apply(client: PoolClient, statement: WriteStatement, body: string): Promise<number> {
  let { rows } = await client.query(statement.write, [body]);
  if (statement.verify !== null) ({ rows } = await client.query(statement.verify, [body]));
  return z.object({ applied: z.int() }).parse(rows[0]).applied;
}

/** Halves what fails until single rows are left; what passes stays. */
async function searchRows(client: PoolClient, parts: readonly Part[], again: boolean): Promise<Written> {
  // A deferred constraint must speak while the row is known, not at COMMIT.
  await client.query('SET CONSTRAINTS ALL IMMEDIATE');
  const rejections = new Map<number, Rejection>();
  const pending = [...parts];
  for (let steps = 0; pending.length > 0; steps++) {
    const part = pending.pop();
    if (part === undefined) break;
    const fault = await tryPart(client, part);
    if (fault === null) continue;
    const [only, more] = part.rows;
    if (only !== undefined && more === undefined) {
      if (!again || !(await stands(client, part))) rejections.set(only.index, fault);
    } else if (steps >= MAX_SEARCH) return { kind: 'incomplete', code: fault.code, reason: fault.reason };
    else pending.push(...halves(part));
  }
  return { kind: 'written', rejections };
}

/** Whether an earlier copy has written what this one may not. @throws what says nothing about the data. */
async function stands(client: PoolClient, { statement, rows, body }: Part): Promise<boolean> {
  if (statement.stands === null) return false;
  await client.query('SAVEPOINT look');
  try {
    const found = await client.query(statement.stands, [body]);
    return z.object({ applied: z.int() }).parse(found.rows[0]).applied === rows.length;
  } catch (error) {
    // What the columns cannot hold does not stand in them.
    if (verdictBeforeCommit(error).kind !== 'data') throw error;
    return false;
  } finally {
    await client.query('ROLLBACK TO SAVEPOINT look');
  }
}

function halves({ statement, rows }: Part): readonly Part[] {
  const middle = Math.ceil(rows.length / 2);
  return [rows.slice(0, middle), rows.slice(middle)].map((half) => ({
    statement,
    rows: half,
    body: bodyOf(half),
  }));
}

/** Writes a part under a savepoint; `null`: written. @throws what says nothing about the data. */
async function tryPart(client: PoolClient, part: Part): Promise<Rejection | null> {
  await client.query('SAVEPOINT part');
  try {
    const applied = await apply(client, part.statement, part.body);
    if (applied === part.rows.length) {
      await client.query('RELEASE SAVEPOINT part');
      return null;
    }
    await client.query('ROLLBACK TO SAVEPOINT part');
    return await whyNotApplied(client, part);
  } catch (error) {
    const verdict = verdictBeforeCommit(error);
    if (verdict.kind !== 'data') throw error;
    await client.query('ROLLBACK TO SAVEPOINT part');
    return rejected(verdict.code, verdict.reason);
  }
}

async function whyNotApplied(client: PoolClient, part: Part): Promise<Rejection> {
  const { rows } = await client.query(part.statement.exact, [part.body]);
  if (z.object({ exact: z.boolean() }).parse(rows[0]).exact) return rejected('silent-noop', SILENT_NOOP);
  return rejected(
    'identity-not-exact',
    'The identity is not written as its column writes it, so two identities could be one row.',
  );
}

function outcomeOf(end: TransactionEnd<Written>, request: BatchRequest, early: Rejections): BatchOutcome {
  switch (end.kind) {
    case 'committed':
    case 'rolled-back':
      return outcomeOfWritten(end.value, request, early);
    case 'failed':
      return outcomeOfVerdict(verdictBeforeCommit(end.error), request.operations.length);
    case 'cancelled':
      return { kind: 'not-applied', code: 'cancelled', retryAfterMs: null, tooLarge: false };
    case 'in-doubt':
      return { kind: 'unknown', code: 'commit-in-doubt' };
  }
}

function outcomeOfWritten(written: Written, request: BatchRequest, early: Rejections): BatchOutcome {
  switch (written.kind) {
    case 'fence':
      return fenceOutcome(written.state);
    case 'late':
      return {
        kind: 'not-applied',
        code: 'too-slow',
        retryAfterMs: null,
        tooLarge: request.operations.length > 1,
      };
    case 'incomplete':
      // Rolled back: a smaller request leaves fewer rows to search.
      return { kind: 'refused', code: written.code, reason: written.reason, divisible: true };
    case 'written': {
      const bad = new Map([...early, ...written.rejections]);
      const receipt = { rows: request.operations.length - bad.size, rejected: bad.size };
      if (bad.size === 0) return { kind: 'accepted', receipt };
      const accepted: OperationOutcome = { kind: 'accepted' };
      const outcomes = request.operations.map((_, index) => bad.get(index) ?? accepted);
      return { kind: 'settled', outcomes, receipt };
    }
  }
}

/** What a verdict means for a request of `size` operations of which none was applied. */
export function outcomeOfVerdict(
  verdict: Verdict,
  size: number,
): Extract<BatchOutcome, { kind: 'not-applied' | 'refused' | 'misconfigured' }> {
  switch (verdict.kind) {
    case 'data':
      return { kind: 'refused', code: verdict.code, reason: verdict.reason };
    case 'misconfigured':
      return verdict;
    case 'transient':
      return {
        kind: 'not-applied',
        code: verdict.code,
        retryAfterMs: null,
        tooLarge: verdict.tooLarge && size > 1,
      };
  }
}

const FENCE_REASONS: Readonly<Record<Exclude<FenceState['kind'], 'held'>, string>> = {
  'target-owned':
    'The table belongs to another mirror or another journal. Where that one is gone for good, delete its row from the fence table.',
  fenced: 'A newer attempt has taken over.',
  'not-taken': 'This attempt has not taken the fence: its row is missing or older.',
};

export function fenceOutcome(
  state: Exclude<FenceState, { kind: 'held' }>,
): Extract<BatchOutcome, { kind: 'misconfigured' }> {
  const code = state.kind === 'not-taken' ? 'fence-not-taken' : state.kind;
  return { kind: 'misconfigured', code, reason: FENCE_REASONS[state.kind] };
}
