/**
 * Whether the texts of a stored member are those that its hashes were taken of. What a run sends is read from rows that were
 * written by earlier ones (design.md rule 2): a removal of somebody else is the worst that an altered row can do.
 *
 * An identity is proven by its hash, under one of the ways in which the target's runs have folded identities. The bytes of its
 * removal are proven to the letter: they hash to the removal hash, and where there is none, to the identity hash.
 */

import { foldingFrom, identityHashInput } from '../domain/folding.ts';
import type { TargetId } from '../domain/ids.ts';
import { one, texts } from './decode.ts';
import { sha256Latin1 } from './hash.ts';
import { type Queryable, run } from './pool.ts';

/** Of one member; `null` of a damaged journal. */
export interface StoredMember {
  readonly identity: string | null;
  readonly identityHash: Buffer | null;
  /** The bytes of its removal; absent where they are not looked at. */
  readonly removal?: string | null | undefined;
  readonly removalHash: Buffer | null;
}

/** Which of the two is not what was written, or is missing. */
export type RowFault = 'identity' | 'removal';

export class RowProof {
  readonly #folds: readonly ((identity: string) => string)[];

  /** @param foldings of retl.target: newest first */
  constructor(foldings: readonly string[]) {
    this.#folds = foldings.filter((text) => text !== '').map((text) => identityHashInput(foldingFrom(text)));
  }

  /** `null`: proven. One hash where nothing is folded, and the identity is what is removed. */
  fault({ identity, identityHash, removal, removalHash }: StoredMember): RowFault | null {
    if (identity === null || identityHash === null) return 'identity';
    const wanted = identityHash.toString('latin1');
    const plain = sha256Latin1(identity);
    if (plain !== wanted && !this.#folds.some((fold) => sha256Latin1(fold(identity)) === wanted))
      return 'identity';
    if (removal === undefined) return null;
    if (removal === null) return 'removal';
    const removed = removal === identity ? plain : sha256Latin1(removal);
    return removed === (removalHash?.toString('latin1') ?? wanted) ? null : 'removal';
  }
}

const FOLDINGS = 'select identity_foldings from retl.target where target_id = $1';

/** The proofs of several targets, each asked for once. */
export class RowProofs {
  readonly #known = new Map<TargetId, RowProof>();

  constructor(private readonly db: Queryable) {}

  /** @throws JournalError */
  async of(target: TargetId): Promise<RowProof> {
    const known = this.#known.get(target);
    if (known !== undefined) return known;
    const proof = new RowProof(texts(one(await run(this.db, FOLDINGS, [target])), 'identity_foldings'));
    this.#known.set(target, proof);
    return proof;
  }
}
