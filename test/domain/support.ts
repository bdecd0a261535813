/** Columns and hashing for tests of the mapping: what a source would hand over, without a source. */

import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { canonicalNumber, canonicalString, parseExactJson } from '../../src/domain/canonical-json.ts';
import { type ErrorDetails, RetlError } from '../../src/domain/errors.ts';
import { compileMapping } from '../../src/domain/mapping.ts';
import type { MappedRow } from '../../src/domain/member.ts';
import type { MemberRule } from '../../src/domain/settings.ts';
import type { Column, RawRow } from '../../src/domain/source-row.ts';

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

const asPrinted = (raw: string): string => raw;

export function text(name: string): Column {
  return { name, typeName: 'text', json: canonicalString, text: asPrinted };
}

/** int8 and numeric: exact digits, as strings in JSON. */
export function digits(name: string): Column {
  return { name, typeName: 'numeric', json: (raw) => `"${raw}"`, text: asPrinted };
}

export function float(name: string): Column {
  const json = (raw: string): string => canonicalNumber(Number(raw));
  return { name, typeName: 'float8', json, text: json };
}

export function bool(name: string): Column {
  const json = (raw: string): string => (raw === 't' ? 'true' : 'false');
  return { name, typeName: 'bool', json, text: json };
}

export function jsonb(name: string): Column {
  return { name, typeName: 'jsonb', json: parseExactJson, text: asPrinted };
}

/** The error that `run` throws, which must be a RetlError. */
export function failure(run: () => unknown): { code: string; details: ErrorDetails; message: string } {
  try {
    run();
  } catch (error) {
    if (!(error instanceof RetlError)) throw error;
    return { code: error.code, details: error.details, message: error.message };
  }
  return expect.fail('nothing was thrown');
}

/** The query of most tests; `row` names the values that are not NULL. */
export const columns = [
  digits('id'),
  text('email'),
  text('plan'),
  bool('active'),
  jsonb('tags'),
  float('score'),
];

export function row(values: Partial<Record<string, string | null>>): RawRow {
  return columns.map((column) => values[column.name] ?? null);
}

/** A member identified by its e-mail address, but for what a test says. */
export function rule(parts: Partial<MemberRule>): MemberRule {
  return { identity: { email: { column: 'email' } }, payload: {}, when: [], ...parts };
}

export function mapper(
  rules: readonly MemberRule[],
  key: readonly string[] = ['id'],
): (raw: RawRow) => MappedRow {
  return compileMapping(rules, key, columns, sha256Hex);
}

/** The mapped row's only member. */
export function member(mapped: MappedRow): { identity: string; upsert: string } {
  expect(mapped.members).toHaveLength(1);
  const [only] = mapped.members;
  if (only === undefined) return expect.fail('no member');
  expect(only.remove).toBeNull();
  return only;
}

/** What an error says of the row: the hash of its key. */
export function keyHash(...parts: (string | null)[]): string {
  return `sha256:${sha256Hex(JSON.stringify(parts))}`;
}
