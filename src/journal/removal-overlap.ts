/**
 * Whether a removal of a run would take away a member that its snapshot wants. The diff goes by identity hashes: two of them that
 * the destination takes for one member would be added and removed by one run, in this order. That is so where the member to go
 * is, folded as the run folds, a wanted one (the mirror's folding has changed since it was accepted); or where both are
 * removed by the same bytes. Nobody's approval makes such a removal right.
 */

import { type Folding, foldingFrom, identityHashInput } from '../domain/folding.ts';
import type { TargetId } from '../domain/ids.ts';
import { big, bytes, text } from './decode.ts';
import { sha256Latin1 } from './hash.ts';
import { type AcceptedValues, acceptedValues } from './held-members.ts';
import { type Queryable, run } from './pool.ts';
import { RowProof } from './row-proof.ts';

export interface Overlap {
  readonly count: number;
  /** The first few of their identity hashes, in hex. */
  readonly keys: readonly string[];
}

/** Of a member to be removed: what it is under the run's folding, and the bytes that remove it. 32 bytes each, as latin-1. */
export interface RemovedHashes {
  readonly folded: string;
  readonly removal: string;
}

/** `null` where the journal has lost one of the texts: it is not proven, and not removed (row-proof.ts). */
export function removedHashes(
  { identity, removal }: AcceptedValues,
  fold: (identity: string) => string,
): RemovedHashes | null {
  if (identity === null || removal === null) return null;
  const removed = sha256Latin1(removal);
  const folded = fold(identity);
  return { folded: folded === removal ? removed : sha256Latin1(folded), removal: removed };
}

const PAGE = 5_000;
const KEYS = 10;

interface Removed extends RemovedHashes {
  readonly key: string;
  readonly values: AcceptedValues;
}

/**
 * Of a run that has planned, in one transaction.
 * @param foldings of retl.target: the run's own first
 * @throws JournalError
 */
export async function removalsOfWanted(
  db: Queryable,
  target: TargetId,
  generation: bigint,
  foldings: readonly string[],
): Promise<Overlap> {
  const [own = [], ...former] = foldings.map(foldingFrom);
  const fold = identityHashInput(own);
  const broader = former.filter((one) => !one.every((way) => own.includes(way)));
  const proof = new RowProof(foldings);
  const found = new Set<string>();
  const doubtful: Removed[] = [];
  for await (const all of removedPages(db, target, generation, fold)) {
    // What was altered since is nobody's identity: that is found out, and told as such, before it is removed.
    const page = all.filter(({ key, values: { identity } }) => {
      const identityHash = Buffer.from(key, 'latin1');
      return proof.fault({ identity, identityHash, removalHash: null }) === null;
    });
    for (const hit of await wanted(db, generation, page)) found.add(hit);
    if (broader.length > 0) doubtful.push(...page.filter(({ key, folded }) => key !== folded));
  }
  if (doubtful.length > 0)
    for (const hit of await wantedBefore(db, generation, doubtful, [...own, ...broader.flat()]))
      found.add(hit);
  const keys = [...found].map((key) => Buffer.from(key, 'latin1').toString('hex')).sort();
  return { count: keys.length, keys: keys.slice(0, KEYS) };
}

/** Held members that no row of the generation gives. */
async function* removedPages(
  db: Queryable,
  target: TargetId,
  generation: bigint,
  fold: (identity: string) => string,
): AsyncGenerator<readonly Removed[]> {
  const query = `select m.identity_hash, m.sequence from retl.membership_${target} m
    where m.identity_hash > $1
      and not exists (select from retl.generation_${generation} g where g.kind = 1 and g.identity_hash = m.identity_hash)
    order by m.identity_hash limit ${PAGE}`;
  let after: Buffer = Buffer.alloc(0);
  for (;;) {
    const rows = await run(db, query, [after]);
    const sequences = rows.map((row) => big(row, 'sequence'));
    const accepted = await acceptedValues(db, sequences, true);
    yield rows.flatMap((row) => {
      const values = accepted.get(big(row, 'sequence'));
      const hashes = values === undefined ? null : removedHashes(values, fold);
      if (values === undefined || hashes === null) return [];
      return [{ ...hashes, key: bytes(row, 'identity_hash').toString('latin1'), values }];
    });
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = bytes(last, 'identity_hash');
  }
}

/** Where `removal_hash` is null the bytes of a member's removal hash to its identity hash. */
async function wanted(
  db: Queryable,
  generation: bigint,
  page: readonly Removed[],
): Promise<readonly string[]> {
  if (page.length === 0) return [];
  const table = `retl.generation_${generation}`;
  const query = `
    select identity_hash as folded, null as removal from ${table} where kind = 1 and identity_hash = any($1)
    union all select null, identity_hash from ${table} where kind = 1 and identity_hash = any($2) and removal_hash is null
    union all select null, removal_hash from ${table} where kind = 1 and removal_hash = any($2)`;
  const hashes = (of: (removed: Removed) => string) => page.map((one) => Buffer.from(of(one), 'latin1'));
  const rows = await run(db, query, [hashes(({ folded }) => folded), hashes(({ removal }) => removal)]);
  const of = (column: string) =>
    new Set(rows.flatMap((row) => (row[column] === null ? [] : [bytes(row, column).toString('latin1')])));
  const [folded, removal] = [of('folded'), of('removal')];
  return page.filter((one) => folded.has(one.folded) || removal.has(one.removal)).map(({ key }) => key);
}

/**
 * Members that were accepted under a folding which the run does not have any more: one of them may be a wanted one that is spelled
 * otherwise, as far as anybody has ever said. Reads the whole snapshot.
 */
async function wantedBefore(
  db: Queryable,
  generation: bigint,
  doubtful: readonly Removed[],
  folding: readonly Folding[],
): Promise<readonly string[]> {
  const fold = identityHashInput([...new Set(folding)]);
  const byText = new Map(doubtful.map(({ key, values }) => [fold(values.identity ?? ''), key]));
  const found: string[] = [];
  await run(
    db,
    `declare wanted no scroll cursor for select identity from retl.generation_${generation} where kind = 1`,
  );
  for (;;) {
    const rows = await run(db, `fetch ${PAGE} from wanted`);
    for (const row of rows) {
      const hit = byText.get(fold(text(row, 'identity')));
      if (hit !== undefined) found.push(hit);
    }
    if (rows.length < PAGE) break;
  }
  await run(db, 'close wanted');
  return found;
}
