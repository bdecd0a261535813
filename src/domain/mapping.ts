/**
 * Mapping by configuration: from a source row to the members it means (design.md sections 2 and 4, rule 7).
 *
 * Rules are compiled once per run into closures that append canonical JSON piece by piece, its names sorted and escaped
 * beforehand: a million rows pass through here. What is upserted is identity and payload merged into one flat
 * object; what is removed is the identity, byte for byte, so that a removal can never name another member.
 */

import { canonicalString, compareNames } from './canonical-json.ts';
import { collapse } from './collapse.ts';
import { checkLength, columnFinder, type Place } from './columns.ts';
import { compileConditions, type Predicate } from './condition.ts';
import { RetlError } from './errors.ts';
import { compileField, type FieldValue } from './field-rule.ts';
import { type EncodedMember, MAX_MEMBERS_PER_ROW, type MappedRow } from './member.ts';
import { reporting } from './row-failure.ts';
import type { FieldRule, MemberRule } from './settings.ts';
import { compileSourceKey } from './source-key.ts';
import { type Column, InvalidValue, type RawRow } from './source-row.ts';

/** Hashes the UTF-8 bytes of a text to 64 lower-case hex digits; passed in, since the domain loads nothing. */
export type Sha256Hex = (text: string) => string;

/**
 * @throws RetlError `data.unknown-column` or `config.invalid` at once; and, from the function it returns, for a row that
 * breaks a rule, a `data.*` code whose details name rule, column, field and key hash.
 */
export function compileMapping(
  rules: readonly MemberRule[],
  key: readonly string[],
  columns: readonly Column[],
  sha256Hex: Sha256Hex,
): (row: RawRow) => MappedRow {
  if (rules.length > MAX_MEMBERS_PER_ROW) {
    throw new RetlError('config.invalid', { rule: 'too-many-members', limit: MAX_MEMBERS_PER_ROW });
  }
  const sourceKey = compileSourceKey(key, columns, sha256Hex);
  const find = columnFinder(columns);
  const members = rules.map((rule) => configured(() => compileMember(rule, find, sha256Hex)));
  const map = (row: RawRow): MappedRow => {
    checkLength(row, columns.length);
    const text = sourceKey.text(row);
    const given: EncodedMember[] = [];
    for (const member of members) {
      if (member.applies(row)) given.push(member.encode(row));
    }
    return { sourceKey: text, members: collapse(given) };
  };
  return reporting(map, sourceKey.hash);
}

/** A field name or a constant that JSON cannot hold is an error of the configuration. */
function configured<T>(compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    throw error instanceof InvalidValue ? new RetlError('config.invalid', { rule: error.rule }) : error;
  }
}

interface CompiledMember {
  readonly applies: Predicate;
  encode(row: RawRow): EncodedMember;
}

/** A field with the text that comes before its value. */
interface CompiledField {
  readonly value: FieldValue;
  readonly beforeInUpsert: string;
  /** `null`: not part of the identity. */
  readonly beforeInIdentity: string | null;
}

function compileMember(
  rule: MemberRule,
  find: (name: string) => Place,
  sha256Hex: Sha256Hex,
): CompiledMember {
  const fields = compileFields(rule, find, sha256Hex);
  return {
    applies: compileConditions(rule.when, find),
    encode(row) {
      let identity = '';
      let upsert = '';
      for (const field of fields) {
        const value = field.value(row);
        upsert += field.beforeInUpsert + value;
        if (field.beforeInIdentity !== null) identity += field.beforeInIdentity + value;
      }
      return { identity: `${identity}}`, upsert: `${upsert}}`, remove: null };
    },
  };
}

function compileFields(
  rule: MemberRule,
  find: (name: string) => Place,
  sha256Hex: Sha256Hex,
): readonly CompiledField[] {
  let identities = 0;
  return sortedFields(rule).map(({ name, part, rule: field }, index) => {
    const label = `${canonicalString(name)}:`;
    const inIdentity = part === 'identity';
    const compiled = {
      value: compileField(field, { field: name, part, find, sha256Hex }),
      beforeInUpsert: (index === 0 ? '{' : ',') + label,
      beforeInIdentity: inIdentity ? (identities === 0 ? '{' : ',') + label : null,
    };
    if (inIdentity) identities += 1;
    return compiled;
  });
}

interface NamedField {
  readonly name: string;
  readonly part: 'identity' | 'payload';
  readonly rule: FieldRule;
}

/** Identity and payload in the order of canonical JSON. */
function sortedFields(rule: MemberRule): readonly NamedField[] {
  const identity = Object.entries(rule.identity);
  if (identity.length === 0) throw new RetlError('config.invalid', { rule: 'no-identity' });
  const twice = identity.find(([name]) => Object.hasOwn(rule.payload, name));
  if (twice !== undefined) {
    throw new RetlError('config.invalid', { rule: 'field-in-identity-and-payload', field: twice[0] });
  }
  return [
    ...identity.map(([name, field]) => ({ name, part: 'identity' as const, rule: field })),
    ...Object.entries(rule.payload).map(([name, field]) => ({
      name,
      part: 'payload' as const,
      rule: field,
    })),
  ].sort((a, b) => compareNames(a.name, b.name));
}
