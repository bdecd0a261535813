/**
 * From a source row to what a snapshot holds of it: mapped, folded, hashed, and held to the destination's schemas. The
 * extraction and the plan share this code, so that both see the same members and refuse the same rows (rule 7).
 */

import { type Folding, identityHashInput } from '../domain/folding.ts';
import { compileMapping } from '../domain/mapping.ts';
import type { EncodedMember, MappedRow, MirrorProjection } from '../domain/member.ts';
import { compileProjection } from '../domain/projection.ts';
import { payloadHashInput } from '../domain/request.ts';
import type { MappingSettings, MirrorSettings } from '../domain/settings.ts';
import type { Column, RawRow } from '../domain/source-row.ts';
import type { CandidateMember, CandidateSink } from '../journal/candidate.ts';
import { sha256Hex, sha256Latin1 } from './hash.ts';
import { type PayloadSchemas, payloadCheck } from './payload-check.ts';
import type { RowFailures } from './row-failures.ts';

/** What the destination makes of a member, as far as its hashes and its validity depend on it. */
export interface MemberForm {
  readonly identityFolding: readonly Folding[];
  /** What besides a payload decides how it arrives; empty: nothing. */
  readonly writeForm: string;
  /** Absent where the adapter has none. */
  readonly payloadSchemas?: Partial<PayloadSchemas> | undefined;
}

/** Of the bytes that a removal will send: `null`, and nothing to hash, where they are those that were hashed as the identity. */
function removalHash({ identity, remove }: EncodedMember, folded: string): string | null {
  const removal = remove ?? identity;
  return removal === folded ? null : sha256Latin1(removal);
}

export type RowSink = Pick<CandidateSink, 'addExcluded' | 'addMember'>;

/** Loads a mapping written in TypeScript. */
export type LoadProjection = (
  mapping: Extract<MappingSettings, { kind: 'module' }>,
) => Promise<MirrorProjection>;

/** @throws RetlError `data.unknown-column`, `config.*` */
export async function compileRow(
  { mapping, source }: Pick<MirrorSettings, 'mapping' | 'source'>,
  columns: readonly Column[],
  projection: LoadProjection,
): Promise<(row: RawRow) => MappedRow> {
  if (mapping.kind === 'rules') return compileMapping(mapping.members, source.key, columns, sha256Hex);
  return compileProjection(await projection(mapping), source.key, columns, sha256Hex);
}

/** Canonical JSON array of the key columns' types: what a later snapshot is compared by. */
export function keyTypes(key: readonly string[], columns: readonly Column[]): string {
  return JSON.stringify(key.map((name) => columns.find((c) => c.name === name)?.typeName ?? ''));
}

/**
 * What puts each row of one snapshot into `sink`. A row that breaks a rule goes to `failures`; after a first one the rest
 * is only counted. @throws what is not about a row's data.
 */
export function rowReader<Row = RawRow>(
  map: (row: Row) => MappedRow,
  form: MemberForm,
  sink: RowSink,
  failures: Pick<RowFailures, 'any' | 'add'>,
): (row: Row) => void {
  const fold = identityHashInput(form.identityFolding);
  const hashed = payloadHashInput(form.writeForm);
  const validate = payloadCheck(form.payloadSchemas);
  const add = (row: Row): void => {
    const { sourceKey, members } = map(row);
    if (members.length === 0 && !failures.any) sink.addExcluded(sourceKey);
    let memberNo = 0;
    for (const m of members) {
      validate?.(m, sourceKey);
      if (failures.any) continue;
      const folded = fold(m.identity);
      const member: CandidateMember = {
        identityHash: sha256Latin1(folded),
        payloadHash: sha256Latin1(hashed(m.upsert)),
        removalHash: removalHash(m, folded),
        identity: m.identity,
        upsert: m.upsert,
        remove: m.remove,
      };
      sink.addMember(sourceKey, memberNo, member);
      memberNo += 1;
    }
  };
  return (row) => {
    try {
      add(row);
    } catch (error) {
      failures.add(error);
    }
  };
}
