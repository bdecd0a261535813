/**
 * From what a person types to the hashes under which the journal may know the member: the mapping's own rules are applied to
 * a plain value (normalised, hashed), and the target's folding to the result, as a run would. Nothing that was typed is ever
 * part of a refusal.
 */

import { hash } from 'node:crypto';
import { z } from 'zod';
import {
  canonicalJson,
  canonicalString,
  compareNames,
  exactNumber,
  parseExactJson,
} from '../domain/canonical-json.ts';
import { compileField } from '../domain/field-rule.ts';
import { type Folding, identityHashInput } from '../domain/folding.ts';
import { type Sha256, sha256, sha256FromHex } from '../domain/ids.ts';
import { RowFailure } from '../domain/row-failure.ts';
import type { FieldRule, MemberRule, MirrorSettings } from '../domain/settings.ts';
import { type Column, InvalidValue, type SourceValue } from '../domain/source-row.ts';

export type Identities =
  /** More than one where the typed value can mean several: another JSON type, another of the mapping's members. */
  | { readonly kind: 'candidates'; readonly hashes: readonly [Sha256, ...Sha256[]] }
  | { readonly kind: 'refused'; readonly message: string; readonly remedy: string };

type Typed = { readonly [field: string]: SourceValue };

const HASH = /^sha256:[0-9a-f]{64}$/;

/** Whether it is the named hash of an identity, for which no configuration is needed. */
export function isIdentityHash(typed: string): boolean {
  return HASH.test(typed);
}

/**
 * @param typed JSON object, bare value, or the named hash of an identity.
 * @param settings `null`: the mirror is not configured here; then only a whole identity is understood, taken literally.
 * @param raw takes values literally, no rule applied.
 */
export function identitiesOf(typed: string, settings: MirrorSettings | null, raw: boolean): Identities {
  if (isIdentityHash(typed)) return { kind: 'candidates', hashes: [sha256(typed)] };
  const folds = foldingsOf(settings).map(identityHashInput);
  const object = objectIn(typed);
  if (object === 'malformed')
    return refused(
      'The identity begins as a JSON object and is none.',
      'Quote it for the shell: \'{"field":"value"}\'.',
    );
  const rules = settings?.mapping.kind === 'rules' ? settings.mapping.members : null;
  const texts =
    rules === null ? literal(object) : rules.flatMap((rule) => ofRule(rule, object ?? typed, raw));
  const hashes = texts.flatMap((text) =>
    folds.map((fold) => sha256FromHex(hash('sha256', fold(text), 'hex'))),
  );
  const [first, ...others] = new Set(hashes);
  if (first === undefined) return notUnderstood(rules, object !== null);
  return { kind: 'candidates', hashes: [first, ...others] };
}

/** Types whose targets read every value as a text: their adapters add `text` to what the mirror says. Others may do so. */
const READ_AS_TEXT: readonly string[] = ['postgres', 'salesforce'];

/**
 * Ways to fold that the target may have. Every adapter of this project has its own as the option `identity_folding`; whether the
 * option is right is for the adapter to judge, and a run that began has judged it.
 */
function foldingsOf(settings: MirrorSettings | null): readonly (readonly Folding[])[] {
  if (settings === null) return [[], ['text']];
  const { type, options } = settings.destination;
  const named = FOLDING.safeParse(options.identity_folding).data ?? [];
  const asText = [...named, 'text'] as const;
  return READ_AS_TEXT.includes(type) ? [asText] : [named, asText];
}

const FOLDING = z.array(z.enum(['case', 'nfc', 'nfkc']));

/** `null`: not a JSON object, but a bare value. Numbers are kept exact or refused. */
function objectIn(typed: string): Typed | null | 'malformed' {
  if (!typed.trimStart().startsWith('{')) return null;
  try {
    const parsed: unknown = JSON.parse(parseExactJson(typed));
    return OBJECT.parse(parsed);
  } catch {
    return 'malformed';
  }
}

const VALUE: z.ZodType<SourceValue> = z.lazy(() =>
  z.union([z.null(), z.boolean(), z.number(), z.string(), z.array(VALUE), z.record(z.string(), VALUE)]),
);
const OBJECT = z.record(z.string(), VALUE);

function literal(object: Typed | null): readonly string[] {
  return object === null || Object.keys(object).length === 0 ? [] : [canonicalJson(object)];
}

/** Canonical identities that the typed value can mean for one member of the mapping; none where it does not fit. */
function ofRule(rule: MemberRule, typed: Typed | string, raw: boolean): readonly string[] {
  const fields = Object.entries(rule.identity).sort(([a], [b]) => compareNames(a, b));
  const columns = fields.filter(([, field]) => 'column' in field);
  if (typeof typed === 'string' && columns.length !== 1) return [];
  if (typeof typed === 'object' && !Object.keys(typed).every((name) => Object.hasOwn(rule.identity, name)))
    return [];
  const given = (name: string) => {
    if (typeof typed === 'string') return typed;
    return Object.hasOwn(typed, name) ? typed[name] : undefined;
  };
  return fields.reduce<readonly string[]>(
    (begun, [name, field], index) =>
      begun.flatMap((text) =>
        fieldTexts(field, given(name), typeof typed === 'string', raw).map(
          (value) =>
            `${text}${index === 0 ? '{' : ','}${canonicalString(name)}:${value}${index === fields.length - 1 ? '}' : ''}`,
        ),
      ),
    [''],
  );
}

/** Canonical JSON values that one field can have. */
function fieldTexts(
  field: FieldRule,
  value: SourceValue | undefined,
  isBare: boolean,
  raw: boolean,
): readonly string[] {
  if (!('column' in field)) {
    const constant = canonicalJson(field.value);
    return isBare || value === undefined || canonicalJson(value) === constant ? [constant] : [];
  }
  if (value === undefined || value === null || value === '') return [];
  const isPlain = field.normalize === undefined && field.hash === undefined && field.as === undefined;
  if (raw || isPlain) return plainTexts(value, isBare);
  return typeof value === 'object' ? [] : ruledText(field, String(value));
}

/** A column's own type decides between `42` and `"42"`, and the source alone knows it: both are looked up. */
function plainTexts(value: SourceValue, isBare: boolean): readonly string[] {
  if (typeof value === 'number' || typeof value === 'boolean')
    return [canonicalJson(value), canonicalString(String(value))];
  if (typeof value !== 'string' || !isBare) return attempt(() => canonicalJson(value));
  const word = value === 'true' || value === 'false' ? [value] : [];
  return [...attempt(() => canonicalString(value)), ...attempt(() => exactNumber(value)), ...word];
}

/** The configured rule, as a run applies it; nothing where the value is not of its form. */
function ruledText(field: FieldRule, text: string): readonly string[] {
  const sha256Hex = (input: string) => hash('sha256', input, 'hex');
  const find = () => ({ index: 0, column: TEXT });
  const apply = compileField(field, { field: 'identity', part: 'identity', find, sha256Hex });
  return attempt(() => apply([text]));
}

const TEXT: Column = { name: 'typed', typeName: 'text', json: canonicalString, text: (raw) => raw };

function attempt(make: () => string): readonly string[] {
  try {
    return [make()];
  } catch (error) {
    if (error instanceof RowFailure || error instanceof InvalidValue) return [];
    throw error;
  }
}

function notUnderstood(rules: readonly MemberRule[] | null, isObject: boolean): Identities {
  const remedy = 'Write the whole identity as JSON, or the hash that `retl rejections` shows.';
  if (rules === null)
    return refused('This mirror has no mapping rules here that a bare value could be read by.', remedy);
  const names = [...new Set(rules.map((rule) => Object.keys(rule.identity).join(', ')))].join('; or ');
  if (!isObject && rules.every((rule) => columnsOf(rule) !== 1))
    return refused(`The identity has several fields: ${names}.`, remedy);
  return refused(
    `What was typed is no identity of this mirror, whose fields are: ${names}.`,
    'Check the fields and that each value is of its form; --raw takes values literally.',
  );
}

function columnsOf({ identity }: MemberRule): number {
  return Object.values(identity).filter((field) => 'column' in field).length;
}

function refused(message: string, remedy: string): Identities {
  return { kind: 'refused', message, remedy };
}

/** Canonical JSON array of a source key's texts: typed bare where there is one column, else as a JSON array. */
export function sourceKeyOf(typed: string): string | null {
  if (!typed.trimStart().startsWith('[')) return attempt(() => `[${canonicalString(typed)}]`)[0] ?? null;
  try {
    const parts = z
      .array(z.union([z.string(), z.number()]))
      .min(1)
      .parse(JSON.parse(parseExactJson(typed)));
    return `[${parts.map((part) => canonicalString(String(part))).join(',')}]`;
  } catch {
    return null;
  }
}
