/** The writer of one attempt: a pool, the fence, and the target table as the catalogs describe it. */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import type { Listed, Listing } from '../listing.ts';
import type {
  Action,
  BatchOutcome,
  BatchRequest,
  EmptyCheck,
  PreflightProblem,
  StepOutcome,
  Writer,
  WriterContext,
} from '../port.ts';
import { type PostgresConnection, writingLimitMs } from './connection.ts';
import { deliver, fenceOutcome, outcomeOfVerdict } from './delivery.ts';
import { Fence, type FenceState } from './fence.ts';
import { foldingProblems } from './folding.ts';
import { type QualifiedName, quoteName, quoteQualified } from './identifier.ts';
import { type ListedTable, tableListing } from './listing.ts';
import { columnOf, fenceTable, type PostgresOptions, targetTable } from './options.ts';
import { identityColumns, type KnownFields, type Subject, tableProblems } from './preflight.ts';
import { verdictBeforeCommit } from './sqlstate.ts';
import type { Binding, Target } from './statements.ts';
import { columnNamed, describeTable, type Table } from './table.ts';
import { type Database, openDatabase, type TransactionEnd } from './transaction.ts';

/** Requests in flight at most, and so connections at most. */
export const MAX_IN_FLIGHT = 8;

type Step = 'init' | 'attach' | 'finish';
type Problem = Extract<StepOutcome, { kind: 'not-applied' | 'refused' | 'misconfigured' | 'unknown' }>;

export class PostgresWriter implements Writer {
  private readonly database: Database;
  private readonly fence: Fence;
  private readonly name: QualifiedName;
  private readonly fields: KnownFields;
  private readonly writingLimitMs: number;
  /** Read once; forgotten when a statement no longer fits it. */
  private table: Table | null = null;

  constructor(
    connection: PostgresConnection,
    private readonly options: PostgresOptions,
    private readonly context: WriterContext,
    /** Where rows go, where that is not the target itself. */
    into: QualifiedName | null = null,
  ) {
    this.database = openDatabase(connection, MAX_IN_FLIGHT);
    this.writingLimitMs = writingLimitMs(connection);
    const target = targetTable(options);
    this.name = into ?? target;
    this.fence = new Fence(fenceTable(options), target, context);
    const rules = context.fields ?? [];
    this.fields = { rules, identity: options.identity ?? rules[0]?.identity ?? null };
  }

  async preflight(): Promise<readonly PreflightProblem[]> {
    const end = await this.transact((client) => this.problems(client));
    if (end.kind === 'rolled-back' || end.kind === 'committed') return end.value;
    const outcome = notAcceptedOf(end);
    return [
      {
        code: outcome.code,
        message: 'The database cannot be reached or refuses to describe the table.',
        remedy: 'Check host, port, database, user, password, TLS and the network.',
        ...(outcome.kind === 'not-applied' ? { transient: true } : {}),
      },
    ];
  }

  async checkEmpty(): Promise<EmptyCheck> {
    const end = await this.transact(async (client) => {
      const { rows } = await client.query(
        `SELECT EXISTS (SELECT FROM ${quoteQualified(this.name)}) AS filled`,
      );
      return z.object({ filled: z.boolean() }).parse(rows[0]).filled;
    });
    if (end.kind !== 'rolled-back') return { kind: 'failed', code: notAcceptedOf(end).code };
    return { kind: end.value ? 'not-empty' : 'empty' };
  }

  init(): Promise<StepOutcome> {
    return this.step('init', async (client) => {
      if (!(await this.fence.exists(client))) await this.fence.create(client);
      return this.fence.take(client, true);
    });
  }

  /** The session is the fence alone, and taking it twice equals taking it once. */
  reconcileInit(): Promise<StepOutcome> {
    return this.init();
  }

  attach(): Promise<StepOutcome> {
    return this.step('attach', (client) => this.fence.take(client, false));
  }

  upsert(request: BatchRequest): Promise<BatchOutcome> {
    return this.deliver('upsert', request);
  }

  remove(request: BatchRequest): Promise<BatchOutcome> {
    return this.deliver('remove', request);
  }

  /** Nothing is ever staged. */
  async poll(): Promise<BatchOutcome> {
    return { kind: 'unknown', code: 'never-staged' };
  }

  finish(): Promise<StepOutcome> {
    return this.step('finish', (client) => this.fence.check(client));
  }

  /** The same statement twice equals once; the fence has waited for older attempts, and keeps them from following it. */
  reconcileBatch(request: BatchRequest): Promise<BatchOutcome> {
    return this.deliver(request.action, request, true);
  }

  reconcileFinish(): Promise<StepOutcome> {
    return this.finish();
  }

  /** A run opens nothing in the database that must be taken back; the fence stays with its owner. */
  async abort(): Promise<StepOutcome> {
    return { kind: 'accepted', receipt: {} };
  }

  /** The whole table; what of it is the mirror's own, only the journal knows. */
  list(): Listing {
    return tableListing(
      (client) => this.listed(client),
      async (work) => {
        const end = await this.transact(work);
        return end.kind === 'rolled-back' ? end.value : unreadable(end);
      },
    );
  }

  close(): Promise<void> {
    return this.database.close();
  }

  private async listed(client: PoolClient): Promise<ListedTable | string> {
    const table = await describeTable(client, this.name);
    if (table === null) return 'table-missing';
    const { rules, identity } = this.fields;
    if (identity === null) return 'identity-unknown';
    const keys = this.bindings(table, identity);
    const payload = this.bindings(table, [...new Set(rules.flatMap((rule) => rule.payload))]);
    if (keys === null || payload === null) return 'unknown-column';
    return { name: this.name, table, identity: keys, payload };
  }

  /** `null`: a field has no column. */
  private bindings(table: Table, fields: readonly string[]): readonly Binding[] | null {
    const bound = fields.flatMap((field) => {
      const column = columnNamed(table, columnOf(this.options, field));
      return column === undefined ? [] : [{ field, column }];
    });
    return bound.length === fields.length ? bound : null;
  }

  private async problems(client: PoolClient): Promise<readonly PreflightProblem[]> {
    const role = await this.role(client);
    const table = await describeTable(client, this.name);
    const fence = await this.fenceProblems(client, role);
    if (table === null) {
      const message = `There is no table ${quoteQualified(this.name)} in the database.`;
      return [
        { code: 'table-missing', message, remedy: 'Create it with a primary key on the identity columns.' },
        ...fence,
      ];
    }
    const { name, options, fields } = this;
    const subject: Subject = { name, table, options, fields, role };
    const folding = await foldingProblems(client, identityColumns(subject), options.identity_folding);
    return [...tableProblems(subject), ...folding, ...fence];
  }

  private async fenceProblems(client: PoolClient, role: string): Promise<readonly PreflightProblem[]> {
    const state = await this.fence.look(client);
    if (state === 'ready' || state === 'creatable') return [];
    const grant = `${this.fence.grant(role)};`;
    return [
      state === 'barred'
        ? { code: 'privilege-fence', message: 'The role may not use the fence table.', remedy: grant }
        : {
            code: 'fence-missing',
            message: 'There is no fence table, and the role may not create it.',
            remedy: `${this.fence.ddl}; ${grant}`,
          },
    ];
  }

  private async role(client: PoolClient): Promise<string> {
    const { rows } = await client.query('SELECT current_user::text AS role');
    return quoteName(z.object({ role: z.string() }).parse(rows[0]).role);
  }

  /** Reads only: whatever it answers, the transaction is rolled back. */
  private transact<T>(read: (client: PoolClient) => Promise<T>): Promise<TransactionEnd<T>> {
    return this.database.transact(this.context.signal, async (client) => ({
      commit: false,
      value: await read(client),
    }));
  }

  private async step(step: Step, work: (client: PoolClient) => Promise<FenceState>): Promise<StepOutcome> {
    const end = await this.database.transact<FenceState>(this.context.signal, async (client) => {
      const state = await work(client);
      // A finish has only looked: there is nothing to commit, and so no answer to lose.
      return { commit: step !== 'finish' && state.kind === 'held', value: state };
    });
    if (end.kind !== 'committed' && end.kind !== 'rolled-back') return notAcceptedOf(end);
    if (end.value.kind !== 'held') return fenceOutcome(end.value);
    return { kind: 'accepted', receipt: { step, epoch: String(this.context.epoch) } };
  }

  private async deliver(action: Action, request: BatchRequest, again = false): Promise<BatchOutcome> {
    const until = this.context.now() + this.writingLimitMs;
    const target = await this.target(request);
    if ('kind' in target) return target;
    const outcome = await deliver(
      {
        database: this.database,
        fence: this.fence,
        target,
        columnOf: (field) => columnOf(this.options, field),
        signal: this.context.signal,
        again,
        tooLate: () => this.context.now() >= until,
      },
      action,
      request,
    );
    if (outcome.kind === 'misconfigured') this.table = null; // it may have been altered: look again next time
    return outcome;
  }

  private async target(request: BatchRequest): Promise<Target | Problem> {
    if (this.table === null) {
      const end = await this.transact((client) => describeTable(client, this.name));
      if (end.kind !== 'rolled-back') return notAcceptedOf(end);
      this.table = end.value;
    }
    const { table, name } = this;
    if (table === null) return misconfigured('table-missing', 'There is no such table.');
    const identity = this.bindings(table, this.fields.identity ?? identityOf(request));
    if (identity === null) return misconfigured('unknown-column', 'An identity field has no column.');
    return { name, table, identity, folds: this.options.identity_folding.length > 0 };
  }
}

/** Of a module's members nothing is known but what they are. */
function identityOf(request: BatchRequest): readonly string[] {
  const [first] = request.operations;
  return first === undefined
    ? []
    : Object.keys(z.record(z.string(), z.unknown()).parse(JSON.parse(first.identity)));
}

/** A value that no longer fits its column is a column of another type by now. */
function unreadable<T>(end: TransactionEnd<T>): Exclude<Listed, { kind: 'listed' }> {
  if (end.kind === 'failed' && verdictBeforeCommit(end.error).kind === 'data')
    return { kind: 'misconfigured', code: 'column-type' };
  const { kind, code } = notAcceptedOf(end);
  return { kind: kind === 'misconfigured' || kind === 'refused' ? 'misconfigured' : 'failed', code };
}

function misconfigured(code: string, reason: string): Problem {
  return { kind: 'misconfigured', code, reason };
}

/** What the end of a transaction without an answer means for a step. */
export function notAcceptedOf<T>(end: TransactionEnd<T>): Problem {
  switch (end.kind) {
    case 'failed':
      return outcomeOfVerdict(verdictBeforeCommit(end.error), 1);
    case 'cancelled':
      return { kind: 'not-applied', code: 'cancelled', retryAfterMs: null, tooLarge: false };
    case 'in-doubt':
      return { kind: 'unknown', code: 'commit-in-doubt' };
    case 'committed':
    case 'rolled-back':
      throw new Error('a transaction that answered has no fault');
  }
}
