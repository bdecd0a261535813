/**
 * From an identity as a target tells it, where every field is a text, to the one that the mapping makes: `"12"` of a column that
 * the mapping sends as a number is 12. Whether a field is a text, a number or a boolean is decided by its rule and the query's
 * column, never by what the text looks like: another form would be another member, and a removal of the right one.
 */

import { canonicalJson, exactNumber } from '../domain/canonical-json.ts';
import { RetlError } from '../domain/errors.ts';
import type { FieldRule, MappingSettings } from '../domain/settings.ts';
import type { Column } from '../domain/source-row.ts';

/** Whether a field is null, outside of a string too. */
const MAY_LACK = /:null[,}]/;

/** Whether the target has told of something that lacks a part of an identity: no member of any mirror. */
export function lacksIdentity(identity: string): boolean {
  if (!MAY_LACK.test(identity)) return false;
  const fields: object = JSON.parse(identity);
  return Object.values(fields).includes(null);
}

type Form = 'string' | 'number' | 'boolean';

const NUMBERS: readonly string[] = ['int2', 'int4', 'float4', 'float8', 'oid'];
/** Whose JSON may be of any form. */
const ANY: readonly string[] = ['json', 'jsonb'];

/**
 * What turns the canonical JSON of a listed identity into that of the mapping.
 * @throws RetlError `data.baseline-listing` here and from what it returns; `data.unknown-column`
 */
export function listedIdentity(
  mapping: MappingSettings,
  columns: readonly Column[],
): (identity: string) => Readonly<Record<string, string | number | boolean>> {
  if (mapping.kind === 'module') throw broken('mapping-is-a-module');
  const forms = new Map<string, Form>();
  for (const { identity } of mapping.members) {
    for (const [field, rule] of Object.entries(identity)) {
      const form = formOf(rule, columns);
      if ((forms.get(field) ?? form) !== form) throw broken('identity-form', field);
      forms.set(field, form);
    }
  }
  return (identity) => {
    if (lacksIdentity(identity)) throw broken('identity-null');
    const listed: unknown = JSON.parse(identity);
    if (typeof listed !== 'object' || listed === null) throw broken('identity-form');
    const fields = Object.entries(listed);
    if (fields.length !== forms.size) throw broken('identity-fields');
    return Object.fromEntries(fields.map(([field, text]) => [field, inForm(field, text, forms.get(field))]));
  };
}

function formOf(rule: FieldRule, columns: readonly Column[]): Form {
  if (!('column' in rule)) {
    const { value } = rule;
    return typeof value === 'number' ? 'number' : typeof value === 'boolean' ? 'boolean' : 'string';
  }
  if (rule.as !== undefined) return rule.as === 'number' ? 'number' : 'string';
  if (rule.hash !== undefined || (rule.normalize ?? []).length > 0) return 'string';
  const column = columns.find(({ name }) => name === rule.column);
  if (column === undefined) throw new RetlError('data.unknown-column', { column: rule.column });
  if (ANY.includes(column.typeName) || column.noKey === true) throw broken('identity-form', rule.column);
  // A type of another schema may have such a name, and is printed as a text.
  if (column.typeName === 'bool' && column.json('t') === 'true') return 'boolean';
  return NUMBERS.includes(column.typeName) && column.json('1') === '1' ? 'number' : 'string';
}

function inForm(field: string, text: unknown, form: Form | undefined): string | number | boolean {
  if (typeof text !== 'string') throw broken('identity-form', field);
  switch (form) {
    case 'string':
      return text;
    case 'number':
      return numberOf(field, text);
    case 'boolean':
      if (text === 'true' || text === 'false') return text === 'true';
      throw broken('identity-form', field);
    default:
      throw broken('identity-fields', field);
  }
}

/** One that a double prints back as the target has written it. */
function numberOf(field: string, text: string): number {
  try {
    if (exactNumber(text) === canonicalJson(Number(text))) return Number(text);
  } catch {
    // no number, or one that no double holds
  }
  throw broken('identity-form', field);
}

function broken(rule: string, field?: string): RetlError {
  return new RetlError('data.baseline-listing', { rule, ...(field === undefined ? {} : { field }) });
}
