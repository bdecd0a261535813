/**
 * One field of a member: from a row to its canonical JSON value, by a rule of the configuration. Deterministic: no
 * clock, no randomness, nothing but the row.
 *
 * NULL stays null, is never normalised and never hashed; '' and an absent field are other things. In an identity
 * neither NULL nor '' is allowed, whether it comes from the source or out of normalisation: all such rows would be one
 * member. A digest of '' is refused in a payload too, where it would pass for a value.
 */

import { canonicalJson, canonicalString, exactNumber } from './canonical-json.ts';
import { cell, jsonOf, type Place, textOf } from './columns.ts';
import { RetlError } from './errors.ts';
import { existingDigest, normalize, trim } from './normalize.ts';
import { named, RowFailure } from './row-failure.ts';
import type { FieldRule, Normalization } from './settings.ts';
import type { RawRow } from './source-row.ts';

/** Canonical JSON of the field's value in a row. */
export type FieldValue = (row: RawRow) => string;

export interface FieldContext {
  readonly field: string;
  readonly part: 'identity' | 'payload';
  readonly find: (name: string) => Place;
  readonly sha256Hex: (text: string) => string;
}

type ColumnRule = Extract<FieldRule, { column: string }>;
/** What becomes of a column's exact text on its way to a hash or a JSON value. */
type Step = (text: string) => string;

export function compileField(rule: FieldRule, context: FieldContext): FieldValue {
  if (!('column' in rule)) return constant(rule.value, context);
  const place = context.find(rule.column);
  const value = compileValue(rule, place, context);
  if (context.part === 'payload') {
    return (row) => {
      const raw = cell(row, place.index);
      return raw === null ? 'null' : value(raw);
    };
  }
  return (row) => {
    const raw = cell(row, place.index);
    const json = raw === null ? 'null' : value(raw);
    if (json === 'null' || json === '""') throw nullIdentity(rule.column, context);
    return json;
  };
}

function constant(value: string | number | boolean | null, context: FieldContext): FieldValue {
  const json = canonicalJson(value);
  if (context.part === 'identity' && (json === 'null' || json === '""')) {
    throw new RetlError('config.invalid', { rule: 'empty-identity-constant', field: context.field });
  }
  return () => json;
}

function compileValue(rule: ColumnRule, { column }: Place, context: FieldContext): (raw: string) => string {
  const steps = rule.normalize ?? [];
  if (rule.hash !== undefined && rule.as === 'number') {
    throw new RetlError('config.invalid', { rule: 'hash-as-number', field: context.field });
  }
  if (steps.length === 0 && rule.hash === undefined && rule.as === undefined) {
    return (raw) => jsonOf(column, raw);
  }
  const normalized = compileSteps(steps, rule, context);
  const finished = rule.hash === undefined ? normalized : hashed(normalized, steps, rule.column, context);
  const encode = rule.as === 'number' ? exactNumber : canonicalString;
  return (raw) => {
    const text = finished(textOf(column, raw));
    try {
      return encode(text);
    } catch (error) {
      throw named(error, { column: rule.column, field: context.field });
    }
  };
}

function compileSteps(steps: readonly Normalization[], rule: ColumnRule, context: FieldContext): Step {
  return (text) => {
    let current = text;
    for (const step of steps) {
      const next = normalize(step, current);
      if (next === null) throw notOfForm(step, current, rule.column, context);
      current = next;
    }
    return current;
  };
}

/** Hashes, unless the source has hashed the e-mail address or phone number already. */
function hashed(
  normalized: Step,
  steps: readonly Normalization[],
  column: string,
  context: FieldContext,
): Step {
  const digestsAreKnown = steps.includes('email') || steps.includes('phone');
  const digest = (text: string): string => {
    if (text !== '') return context.sha256Hex(text);
    throw context.part === 'identity'
      ? nullIdentity(column, context)
      : new RowFailure('data.invalid-row', { rule: 'hash-of-empty', column, field: context.field });
  };
  if (!digestsAreKnown) return (text) => digest(normalized(text));
  return (text) => existingDigest(text) ?? digest(normalized(text));
}

function nullIdentity(column: string, { field }: FieldContext): RowFailure {
  return new RowFailure('data.null-key', { column, field });
}

function notOfForm(step: Normalization, text: string, column: string, context: FieldContext): RowFailure {
  if (context.part === 'identity' && trim(text) === '') return nullIdentity(column, context);
  return new RowFailure('data.invalid-row', { rule: `not-${step}`, column, field: context.field });
}
