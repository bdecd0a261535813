/**
 * Batches of the log as writes of documents. What a page comes to for each member is one write, whose version is the position
 * of the last entry that it comes from: replaying a page, or a part of it in other pages, gives the same documents.
 */

import { identityWords } from '../../domain/identity-text.ts';
import type { HeldMembers, NamedEntry } from '../indexer.ts';
import { knownIdentity } from '../known-identity.ts';
import { timeText } from '../time-text.ts';

/** A document that is to stand there, unless a newer one does. */
export interface RowWrite {
  readonly id: string;
  /** Position of the last entry that it comes from. */
  readonly version: bigint;
  readonly document: string;
}

/** Since when a member is held. */
export interface Since {
  readonly position: string;
  readonly at: string;
}

/** A member as a page leaves it. */
interface Folded {
  readonly id: string;
  readonly position: bigint;
  readonly at: string;
  readonly mirror: string;
  readonly target: bigint;
  readonly run: bigint;
  readonly identityHash: Buffer;
  readonly identity: string | null;
  /** `null`: gone. */
  readonly payloadHash: Buffer | null;
  /** `null`: since before the page. */
  readonly since: Since | null;
}

export interface FoldedPage {
  readonly members: readonly Folded[];
  /** Of those that were held before the page and still are: since when is to be looked up. */
  readonly heldBefore: readonly string[];
  /** By how many those who are held have become more. */
  readonly grown: bigint;
}

export function documentId(target: bigint, identityHash: Buffer): string {
  return `${target}:${identityHash.toString('base64url')}`;
}

/** What whole entries come to for each member. */
export function foldEntries(entries: readonly NamedEntry[]): FoldedPage {
  const found = new Map<string, Folded>();
  let grown = 0n;
  for (const { entry, mirror, effects } of entries) {
    const { position, target, run } = entry;
    const at = timeText(entry.recordedAt);
    const now = { position: `${position}`, at };
    for (const { action, identityHash, identity, payloadHash } of effects) {
      const id = documentId(target, identityHash);
      const before = found.get(id);
      const common = { id, position, at, mirror, target, run, identityHash, identity, payloadHash };
      if (action === 'add') grown += 1n;
      if (payloadHash === null) {
        grown -= 1n;
        found.set(id, { ...common, since: now });
        continue;
      }
      const begins = before === undefined ? action === 'add' : before.payloadHash === null;
      found.set(id, { ...common, since: begins ? now : (before?.since ?? null) });
    }
  }
  const members = [...found.values()];
  const heldBefore = members.flatMap(({ id, since }) => (since === null ? [id] : []));
  return { members, heldBefore, grown };
}

/**
 * @param since of those that were held before the page; one that the index lacks is held since it was last sent
 */
export function writesOf({ members }: FoldedPage, since: ReadonlyMap<string, Since>): readonly RowWrite[] {
  return members.map((member) => {
    const { id, position: version, at, payloadHash } = member;
    if (payloadHash === null) return { id, version, document: goneDocument(member) };
    const held = member.since ?? since.get(id) ?? { position: `${version}`, at };
    return { id, version, document: heldDocument({ ...member, payloadHash }, held) };
  });
}

/** Members of a log snapshot, each at the position of its last acceptance. */
export function heldWrites(targets: readonly HeldMembers[]): readonly RowWrite[] {
  return targets.flatMap(({ target, mirror, members }) =>
    members.map((m) => {
      const id = documentId(target, m.identityHash);
      const { identityHash, identity, payloadHash, position } = m;
      const row = { mirror, target, identityHash, identity, payloadHash, run: m.sequence >> 32n, position };
      const since = { position: `${m.since}`, at: timeText(m.sinceAt) };
      return { id, version: position, document: heldDocument({ ...row, at: timeText(m.acceptedAt) }, since) };
    }),
  );
}

type Row = Pick<Folded, 'mirror' | 'target' | 'run' | 'position' | 'at' | 'identityHash' | 'identity'>;

/** A u64 is decimal text: a number of JSON would lose digits in many a reader. Its mapping makes it a number again. */
function heldDocument(row: Row & { readonly payloadHash: Buffer }, since: Since): string {
  const identity = knownIdentity(row.identity, row.position);
  return (
    `{"mirror":${JSON.stringify(row.mirror)},"identity":${JSON.stringify(identity)},"text":${JSON.stringify(identityWords(identity))},` +
    `"since_at":"${since.at}","accepted_at":"${row.at}","run_id":"${row.run}","since":"${since.position}",` +
    `"position":"${row.position}","target_id":"${row.target}","identity_hash":"${row.identityHash.toString('hex')}",` +
    `"payload_hash":"${row.payloadHash.toString('hex')}","gone":false}`
  );
}

function goneDocument(row: Row): string {
  return (
    `{"mirror":${JSON.stringify(row.mirror)},"run_id":"${row.run}","position":"${row.position}","accepted_at":"${row.at}",` +
    `"target_id":"${row.target}","identity_hash":"${row.identityHash.toString('hex')}","gone":true}`
  );
}
