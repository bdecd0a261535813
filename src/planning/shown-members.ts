/** The few members that `--identities` shows: the first of each kind in order of the identity hash, with their values. */

import { compareNames } from '../domain/canonical-json.ts';
import type { FieldChange, PlanIdentities } from '../domain/plan.ts';
import type { CandidateMember } from '../journal/candidate.ts';
import type { HeldValues } from '../journal/held-members.ts';
import type { PlannedMembers } from '../journal/planned-members.ts';
import type { Fate } from './member-table.ts';

interface Seen {
  readonly hash: string;
  readonly identity: string;
  readonly upsert: string;
  /** The operation by which it is held; `null`: it is not. */
  readonly before: bigint | null;
}

export class ShownMembers {
  readonly #added: Seen[] = [];
  readonly #changed: Seen[] = [];

  /** @param limit the most of each kind. */
  constructor(readonly limit: number) {}

  saw(fate: Fate, { identityHash, identity, upsert }: CandidateMember, before: bigint | null): void {
    if (fate !== 'added' && fate !== 'changed') return;
    const list = fate === 'added' ? this.#added : this.#changed;
    list.push({ hash: identityHash, identity, upsert, before });
    if (list.length >= 2 * this.limit + 100) this.#cut(list);
  }

  /** The operations whose values are needed, beside those of the members to be removed. */
  get sequences(): readonly bigint[] {
    this.#cut(this.#changed);
    return this.#changed.flatMap(({ before }) => (before === null ? [] : [before]));
  }

  /** @param held what the journal holds, by operation; what a run has dropped meanwhile is left out. */
  tell(held: ReadonlyMap<bigint, HeldValues>, removed: readonly bigint[]): PlanIdentities {
    this.#cut(this.#added);
    this.#cut(this.#changed);
    return {
      limit: this.limit,
      added: this.#added.map(({ identity, upsert }) => ({
        identity: parsed(identity),
        payload: parsed(upsert),
      })),
      changed: this.#changed.map(({ identity, upsert, before }) => ({
        identity: parsed(identity),
        fields: changedFields((before === null ? undefined : held.get(before))?.payload ?? '{}', upsert),
      })),
      removed: removed.flatMap((sequence) => {
        const values = held.get(sequence);
        return values === undefined ? [] : [{ identity: parsed(values.identity) }];
      }),
    };
  }

  #cut(list: Seen[]): void {
    list.sort((a, b) => compareNames(a.hash, b.hash));
    list.splice(this.limit);
  }
}

/** What a sealed run would still do, in the form of a fresh plan. */
export function tellPlanned(limit: number, { added, changed, removed }: PlannedMembers): PlanIdentities {
  return {
    limit,
    added: added.map(({ identity, payload }) => ({ identity: parsed(identity), payload: parsed(payload) })),
    changed: changed.map(({ identity, payload, before }) => ({
      identity: parsed(identity),
      fields: changedFields(before ?? '{}', payload),
    })),
    removed: removed.map(({ identity }) => ({ identity: parsed(identity) })),
  };
}

/** Of two payloads, canonical JSON objects, the fields that differ, by name. */
export function changedFields(before: string, after: string): readonly FieldChange[] {
  const [old, wanted] = [fieldsOf(before), fieldsOf(after)];
  const names = [...new Set([...old.keys(), ...wanted.keys()])].sort(compareNames);
  return names.flatMap((field) => {
    if (JSON.stringify(old.get(field)) === JSON.stringify(wanted.get(field))) return [];
    return [
      {
        field,
        ...(old.has(field) ? { from: old.get(field) } : {}),
        ...(wanted.has(field) ? { to: wanted.get(field) } : {}),
      },
    ];
  });
}

/** Names and values; canonical, so that equal values have equal texts. */
function fieldsOf(payload: string): ReadonlyMap<string, unknown> {
  const value = parsed(payload);
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : []);
}

function parsed(text: string): unknown {
  return JSON.parse(text);
}
