/** The newest log snapshot, recomputed outside of the database that wrote it: its digest, and the texts of its members. */

import { type LogPosition, logPosition, sha256FromHex } from '../domain/ids.ts';
import { type LogSnapshot, readSnapshotPage, SnapshotDigest, type SnapshotMember } from './log-snapshot.ts';
import type { Queryable } from './pool.ts';
import { RowProofs } from './row-proof.ts';
import { payloadHash, writeFormOf } from './verify-effects.ts';

export type SnapshotVerdict =
  /** `compacted`: a newer one has taken its place meanwhile. */
  | { readonly kind: 'intact' | 'compacted' }
  | {
      readonly kind: 'broken';
      /** The boundary, or the position at which the member was accepted whose text is not there or another. */
      readonly position: LogPosition;
      readonly rule: 'snapshot-digest' | 'snapshot-payload' | 'snapshot-identity' | 'snapshot-removal';
    };

/** @throws JournalError */
export async function verifySnapshot(
  db: Queryable,
  logId: string,
  snapshot: LogSnapshot,
): Promise<SnapshotVerdict> {
  const digest = new SnapshotDigest(logId, snapshot.boundary, snapshot.boundaryHash);
  const forms = new WriteForms(db);
  const proofs = new RowProofs(db);
  let after: Parameters<typeof readSnapshotPage>[2] = null;
  for (;;) {
    const page = await readSnapshotPage(db, snapshot.id, after, { values: true, removals: true });
    if (page.kind === 'compacted') return { kind: 'compacted' };
    if (page.kind === 'end') break;
    for (const { target, members } of page.targets) {
      const proof = await proofs.of(target);
      for (const member of members) {
        digest.add(target, member);
        const fault = (await hasPayload(forms, member)) ? proof.fault(member) : 'payload';
        if (fault !== null)
          return { kind: 'broken', position: logPosition(member.position), rule: `snapshot-${fault}` };
      }
    }
    after = page.next;
  }
  if (digest.digest() !== snapshot.digest)
    return { kind: 'broken', position: snapshot.boundary, rule: 'snapshot-digest' };
  return { kind: 'intact' };
}

async function hasPayload(forms: WriteForms, member: SnapshotMember): Promise<boolean> {
  if (member.payload === null) return false;
  const form = await forms.of(member.sequence >> 32n);
  return payloadHash(form, member.payload) === sha256FromHex(member.payloadHash.toString('hex'));
}

/** Asked for once a run. */
class WriteForms {
  readonly #known = new Map<bigint, string>();

  constructor(private readonly db: Queryable) {}

  async of(run: bigint): Promise<string> {
    const known = this.#known.get(run) ?? (await writeFormOf(this.db, run));
    this.#known.set(run, known);
    return known;
  }
}
