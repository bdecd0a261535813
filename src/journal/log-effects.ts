/**
 * What entries of the log say was accepted, as it comes from the server: a column of each kind for an entry, in one value each,
 * so that a million effects are a few thousand rows. Whoever loads them in bulk reads the columns; everyone else lists them.
 */

import { bytes, type Row, text, textOrNull } from './decode.ts';
import type { LogEntry, OperationRows } from './log.ts';

/** `keep`: an unchanged member was sent once more. It moves the time of its last acceptance, nothing else. */
export type EffectAction = 'add' | 'change' | 'keep' | 'remove';

/** One accepted operation. The hashes are 32 bytes, and views of a larger buffer: copy what is to be kept. */
export interface LogEffect {
  readonly action: EffectAction;
  readonly identityHash: Buffer;
  /** `null` for a removal. */
  readonly payloadHash: Buffer | null;
  /** Canonical JSON; `null` where identities were not asked for. */
  readonly identity: string | null;
  /** The accepted upsert or removal payload, likewise. */
  readonly payload: string | null;
}

/** `identities`: without the payloads, which are by far the most of it. */
export type AskedValues = 'none' | 'identities' | 'all';

const HASH_BYTES = 32;

/** The effects of an entry in one order throughout, whichever that is. */
export class EffectColumns {
  constructor(
    /** 32 bytes each. */
    readonly identityHashes: Buffer,
    /** Likewise; of a removal zeros. */
    readonly payloadHashes: Buffer,
    /** A letter each. */
    private readonly changes: string,
    readonly identities: readonly string[] | null,
    readonly payloads: readonly string[] | null,
  ) {}

  get count(): number {
    return this.changes.length;
  }

  countOf(action: EffectAction): number {
    let count = 0;
    for (let n = 0; n < this.count; n += 1) if (this.actionAt(n) === action) count += 1;
    return count;
  }

  actionAt(index: number): EffectAction {
    return ACTIONS[this.changes[index] ?? ''] ?? 'keep';
  }

  /** In order of the identity hash. */
  list(): readonly LogEffect[] {
    const effects: LogEffect[] = [];
    for (let n = 0, at = 0; n < this.count; n += 1, at += HASH_BYTES) {
      const action = this.actionAt(n);
      effects.push({
        action,
        identityHash: this.identityHashes.subarray(at, at + HASH_BYTES),
        payloadHash: action === 'remove' ? null : this.payloadHashes.subarray(at, at + HASH_BYTES),
        identity: this.identities?.[n] ?? null,
        payload: this.payloads?.[n] ?? null,
      });
    }
    return effects.sort((a, b) => a.identityHash.compare(b.identityHash));
  }
}

const ACTIONS: { readonly [change: string]: EffectAction } = { a: 'add', c: 'change', r: 'remove' };

const NONE = new EffectColumns(Buffer.alloc(0), Buffer.alloc(0), '', null, null);

/** An entry and what it says was accepted. */
export class EntryEffects {
  #effects: readonly LogEffect[] | null = null;

  constructor(
    readonly entry: LogEntry,
    readonly columns: EffectColumns = NONE,
  ) {}

  /** In order of the identity hash. */
  get effects(): readonly LogEffect[] {
    this.#effects ??= this.columns.list();
    return this.#effects;
  }
}

const ZEROS = `'\\x${'00'.repeat(HASH_BYTES)}'::bytea`;

/**
 * The effects of ranges of one run's operations; $1 and $2 are the first and last sequence number of each. The names of tables
 * are made of numbers only. Canonical JSON has no line feed in it, so that one separates the values. They come in whatever
 * order, alike in each column: sorting them here would take longer than reading them.
 */
export function effectsQuery(
  rows: OperationRows,
  action: 'upsert' | 'remove',
  { values, leaveOut }: { readonly values: AskedValues; readonly leaveOut: boolean },
): string {
  const fromGeneration = values !== 'none' && action === 'upsert' && !rows.holdBytes;
  const rowOf = (of: string) => `(select f.row_no from ${rows.table} f where f.sequence = e.${of})`;
  // Both sides of the join are bounded, else each range would read the whole generation.
  const join = fromGeneration
    ? `join retl.generation_${rows.generation} g on g.row_no = o.row_no
         and g.row_no between ${rowOf('first')} and ${rowOf('last')}`
    : '';
  const b = fromGeneration ? 'g' : 'o';
  const joined = (column: string) => `string_agg(${b}.${column}, E'\\n')`;
  const identities = values === 'none' ? '' : `, ${joined('identity')} as identities`;
  const payloads = values === 'all' ? `, ${joined(action)} as payloads` : '';
  const rejected = leaveOut
    ? 'and not exists (select from retl.rejection r where r.sequence = o.sequence)'
    : '';
  return `
    select e.n, x.* from unnest($1::bigint[], $2::bigint[]) with ordinality e(first, last, n) cross join lateral (
      select string_agg(o.identity_hash, ''::bytea) as identity_hashes,
        string_agg(coalesce(o.payload_hash, ${ZEROS}), ''::bytea) as payload_hashes,
        string_agg(o.change::text, '') as changes ${identities} ${payloads}
      from ${rows.table} o ${join}
      where o.sequence between e.first and e.last ${rejected}) x
    where x.changes is not null`;
}

/** A row of {@link effectsQuery}. */
export function decodeColumns(row: Row): EffectColumns {
  return new EffectColumns(
    bytes(row, 'identity_hashes'),
    bytes(row, 'payload_hashes'),
    text(row, 'changes'),
    textOrNull(row, 'identities')?.split('\n') ?? null,
    textOrNull(row, 'payloads')?.split('\n') ?? null,
  );
}
