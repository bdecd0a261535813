/**
 * Native replacement of a table: uploads go into a side table of the run, by the same statements that write to a target
 * (delivery.ts), and the finish swaps. One transaction checks the fence, swaps, and leaves a marker, so that readers see the
 * former set or the new one, an older attempt can swap nothing (rule 9), and a finish whose answer was lost is found.
 *
 * Each member is uploaded once a run under its identity, which is unique in the side table: as many rows as the sealed set
 * has members are that set.
 */

import type { PoolClient } from 'pg';
import type { Listing } from '../listing.ts';
import {
  type BatchOutcome,
  type BatchRequest,
  type EmptyCheck,
  type FinishRequest,
  type PreflightProblem,
  type StepOutcome,
  UNBOUNDED_MS,
  type Writer,
  type WriterContext,
} from '../port.ts';
import type { PostgresConnection } from './connection.ts';
import { fenceOutcome } from './delivery.ts';
import { Fence } from './fence.ts';
import type { QualifiedName } from './identifier.ts';
import { Marker } from './marker.ts';
import { columnOf, fenceTable, type PostgresOptions, targetTable } from './options.ts';
import { createSideTable, dropTable, type SwapTarget, sideTable } from './side-table.ts';
import { swapProblems } from './swap-preflight.ts';
import { takePlace } from './swap-rename.ts';
import { countRows, holdsSide, replaceContents } from './swap-replace.ts';
import { describeTable } from './table.ts';
import { type Database, openDatabase } from './transaction.ts';
import { notAcceptedOf, PostgresWriter } from './writer.ts';

type Refusal = Exclude<StepOutcome, { kind: 'accepted' | 'pending' }>;

/** Statements of one swap at most, but for renamed indexes and moved sequences, which take no time. */
const STATEMENTS = 24;

/** How long a finish may take in all, in ms. */
export function longestSwapMs({ swap_timeout_ms }: PostgresOptions): number {
  return Math.min(UNBOUNDED_MS, STATEMENTS * swap_timeout_ms);
}

export class SwapWriter implements Writer {
  /** For the session and the swap: one connection, whose statements may take long. */
  private readonly database: Database;
  private readonly fence: Fence;
  private readonly marker: Marker;
  private readonly name: QualifiedName;
  /** Writes to the target: looks at it, and never writes. */
  private readonly target: PostgresWriter;
  /** Writes to the side table; made when there is a run. */
  private loader: PostgresWriter | null = null;

  constructor(
    private readonly connection: PostgresConnection,
    private readonly options: PostgresOptions,
    private readonly context: WriterContext,
  ) {
    const timeouts = { ...connection.timeouts, statement: options.swap_timeout_ms };
    this.database = openDatabase({ ...connection, timeouts }, 1);
    this.name = targetTable(options);
    this.fence = new Fence(fenceTable(options), this.name, context);
    this.marker = new Marker(fenceTable(options), this.name);
    this.target = new PostgresWriter(connection, options, context);
  }

  async preflight(): Promise<readonly PreflightProblem[]> {
    const found = await this.target.preflight();
    if (found.some(({ code, transient }) => transient === true || code === 'table-missing')) return found;
    const fields = this.fields();
    if (fields === null) return [...found, FIELDS_UNKNOWN];
    const end = await this.database.transact(this.context.signal, async (client) => {
      const target = await this.describe(client, fields);
      const value = target === null ? [] : await swapProblems(client, target, this.marker, this.options);
      return { commit: false, value };
    });
    return end.kind === 'rolled-back' ? [...found, ...end.value] : found;
  }

  checkEmpty(): Promise<EmptyCheck> {
    return this.target.checkEmpty();
  }

  list(): Listing {
    return this.target.list();
  }

  init(): Promise<StepOutcome> {
    return this.step(async (client) => {
      if (!(await this.fence.exists(client))) await this.fence.create(client);
      const state = await this.fence.take(client, true);
      if (state.kind !== 'held') return fenceOutcome(state);
      const fields = this.fields();
      const target = fields === null ? null : await this.describe(client, fields);
      if (target === null) return misconfigured('table-missing', 'There is no such table.');
      await this.marker.create(client);
      await createSideTable(client, target, this.run, this.options.swap ?? 'replace');
      return { kind: 'accepted', receipt: { epoch: String(this.context.epoch) } };
    });
  }

  /** The side table is there already, or is made now: twice equals once. */
  reconcileInit(): Promise<StepOutcome> {
    return this.init();
  }

  attach(): Promise<StepOutcome> {
    return this.target.attach();
  }

  upsert(request: BatchRequest): Promise<BatchOutcome> {
    return this.side().upsert(request);
  }

  async remove(): Promise<BatchOutcome> {
    const reason = 'A table is replaced as a whole; single members are never removed.';
    return { kind: 'refused', code: 'removals-refused', reason };
  }

  /** Nothing is ever staged. */
  poll(): Promise<BatchOutcome> {
    return this.target.poll();
  }

  reconcileBatch(request: BatchRequest): Promise<BatchOutcome> {
    return request.action === 'upsert' ? this.side().reconcileBatch(request) : this.remove();
  }

  finish(request: FinishRequest): Promise<StepOutcome> {
    return this.step(async (client) => {
      const state = await this.fence.check(client);
      if (state.kind !== 'held') return fenceOutcome(state);
      if (await this.marker.says(client, request.batchId)) return swapped(request);
      return this.swap(client, request);
    });
  }

  /** The marker tells of a swap that was committed; one that was not has left nothing, and is made now. */
  reconcileFinish(request: FinishRequest): Promise<StepOutcome> {
    return this.finish(request);
  }

  /** Drops the run's side table; the target is as it was. */
  abort(): Promise<StepOutcome> {
    return this.step(async (client) => {
      const state = await this.fence.take(client, false);
      if (state.kind !== 'held') return fenceOutcome(state);
      await dropTable(client, sideTable(this.name, this.run));
      return { kind: 'accepted', receipt: {} };
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.database.close(), this.target.close(), this.loader?.close()]);
  }

  private side(): PostgresWriter {
    const into = sideTable(this.name, this.run);
    this.loader ??= new PostgresWriter(this.connection, this.options, this.context, into);
    return this.loader;
  }

  private async swap(client: PoolClient, request: FinishRequest): Promise<StepOutcome> {
    const fields = this.fields();
    const target = fields === null ? null : await this.describe(client, fields);
    if (target === null) return misconfigured('table-missing', 'There is no such table.');
    const side = sideTable(this.name, this.run);
    if ((await describeTable(client, side)) === null) {
      return refused('side-table-missing', 'The table of the run’s uploads is gone.');
    }
    if ((await countRows(client, side)) !== request.members) {
      return refused('members-differ', 'The uploads do not add up to the members of the sealed set.');
    }
    const barred = await this.exchange(client, target, side, request.members);
    if (barred !== null) return barred;
    await this.marker.write(client, request.batchId, request.generation, request.members);
    return swapped(request);
  }

  /** `null`: it is done, unless the transaction is rolled back. */
  private async exchange(
    client: PoolClient,
    target: SwapTarget,
    side: QualifiedName,
    members: number,
  ): Promise<Refusal | null> {
    const { swap, accept_losses, identity_folding } = this.options;
    if (swap === 'rename') {
      const [loss] = await takePlace(client, target.name, side, accept_losses);
      if (loss === undefined) return null;
      return misconfigured(`swap-loses-${loss.kind}`, `A rename would lose ${loss.kind}: ${loss.name}.`);
    }
    await replaceContents(client, target, side, identity_folding.length > 0);
    if (!(await holdsSide(client, target, side, members))) {
      return refused('silent-noop', 'A trigger or a rule of the table discarded or added rows.');
    }
    await dropTable(client, side);
    return null;
  }

  /** Commits what is accepted, and nothing else. */
  private async step(work: (client: PoolClient) => Promise<StepOutcome>): Promise<StepOutcome> {
    const end = await this.database.transact<StepOutcome>(this.context.signal, async (client) => {
      const value = await work(client);
      return { commit: value.kind === 'accepted', value };
    });
    return end.kind === 'committed' || end.kind === 'rolled-back' ? end.value : notAcceptedOf(end);
  }

  private async describe(client: PoolClient, fields: Fields): Promise<SwapTarget | null> {
    const table = await describeTable(client, this.name);
    if (table === null) return null;
    const columns = (names: readonly string[]) => [
      ...new Set(names.map((name) => columnOf(this.options, name))),
    ];
    const keys = columns(fields.identity);
    return { name: this.name, table, keys, columns: [...new Set([...keys, ...columns(fields.all)])] };
  }

  /** What is written; `null` where nobody has said. A module's fields are those that `columns` and `identity` name. */
  private fields(): Fields | null {
    const { identity, columns } = this.options;
    const rules = this.context.fields;
    if (rules !== undefined) {
      const all = rules.flatMap((rule) => [...rule.identity, ...rule.payload]);
      return { identity: identity ?? rules[0]?.identity ?? [], all };
    }
    const named = Object.keys(columns);
    return identity === undefined || named.length === 0 ? null : { identity, all: named };
  }

  private get run(): string {
    if (this.context.run === undefined) throw new Error('what is written belongs to a run');
    return this.context.run;
  }
}

interface Fields {
  readonly identity: readonly string[];
  readonly all: readonly string[];
}

const FIELDS_UNKNOWN: PreflightProblem = {
  code: 'fields-unknown',
  message: 'A swap must know the columns beforehand, and the mapping is a module.',
  remedy: 'Name the identity fields in `identity`, and every field with its column in `columns`.',
};

function swapped({ generation, members }: FinishRequest): StepOutcome {
  return { kind: 'accepted', receipt: { generation, members } };
}

function misconfigured(code: string, reason: string): Refusal {
  return { kind: 'misconfigured', code, reason };
}

function refused(code: string, reason: string): Refusal {
  return { kind: 'refused', code, reason };
}
