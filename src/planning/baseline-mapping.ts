/**
 * From a row of a file to the members that the target holds, by the mirror's own mapping: the identities, and so the removals,
 * are byte for byte those of a row of the query. Where the file lacks columns of a payload it is not known, and stands as the
 * identity alone: it differs from every payload that has more, so that the first run sends the member as a change.
 */

import { RetlError } from '../domain/errors.ts';
import { compileMapping } from '../domain/mapping.ts';
import type { MappedRow } from '../domain/member.ts';
import { compileProjection, encodeMember } from '../domain/projection.ts';
import { RowFailure } from '../domain/row-failure.ts';
import type { FieldRule, MemberRule, MirrorSettings } from '../domain/settings.ts';
import type { Column, RawRow } from '../domain/source-row.ts';
import type { TableRow } from './baseline-table.ts';
import { rawOf } from './file-value.ts';
import { sha256Hex } from './hash.ts';
import type { LoadProjection } from './row-reader.ts';

export interface BaselineMapping {
  /** @throws RetlError `data.*` for a row that breaks a rule. */
  readonly map: (row: TableRow) => MappedRow;
  /** Columns of payloads that the file lacks. */
  readonly unknown: readonly string[];
}

/** Beside the query's columns, whose names hold no NUL. */
const LINE = '\0line';
const LINE_COLUMN: Column = {
  name: LINE,
  typeName: 'int8',
  json: (raw) => `"${raw}"`,
  text: (raw) => raw,
};

/**
 * For a table of these columns. A row's key is its line: the file need not have the query's own.
 * @throws RetlError `data.baseline-file` where columns are missing; `config.*`
 */
export async function compileBaseline(
  settings: Pick<MirrorSettings, 'mapping' | 'source'>,
  described: readonly Column[],
  names: readonly string[],
  projection: LoadProjection,
): Promise<BaselineMapping> {
  const { mapping, source } = settings;
  const columns = described.filter(({ name }) => names.includes(name));
  const read = reader(columns, names);
  if (mapping.kind === 'module') {
    requireColumns(
      described.map(({ name }) => name),
      names,
    );
    const map = compileProjection(await projection(mapping), source.key, columns, sha256Hex);
    return { map: holding((row) => ({ ...map(read(row)), sourceKey: keyOf(row) })), unknown: [] };
  }
  requireColumns(
    mapping.members.flatMap(({ identity }) => columnsOf(identity)),
    names,
  );
  const rules = mapping.members.map((rule) => known(rule, names));
  const map = compileMapping(rules, [LINE], [...columns, LINE_COLUMN], sha256Hex);
  const payload = mapping.members.flatMap((rule) => columnsOf(rule.payload));
  return {
    map: holding((row) => map([...read(row), String(row.line)])),
    unknown: [...new Set(payload.filter((name) => !names.includes(name)))],
  };
}

/** For rows that are members already: `identity`, and where they are known `upsert` and `remove`. */
export function mappedBaseline(names: readonly string[]): BaselineMapping {
  requireColumns(['identity'], names);
  const strange = names.filter((name) => !['identity', 'upsert', 'remove'].includes(name));
  if (strange.length > 0) throw broken({ rule: 'unknown-columns', columns: strange });
  const at = (row: TableRow, name: string) => row.values[names.indexOf(name)] ?? null;
  const map = (row: TableRow): MappedRow => {
    const identity = at(row, 'identity');
    const member = {
      identity,
      upsert: at(row, 'upsert') ?? identity,
      remove: at(row, 'remove') ?? identity,
    };
    return { sourceKey: keyOf(row), members: [encodeMember(member)] };
  };
  return { map: inWords(map), unknown: names.includes('upsert') ? [] : ['upsert'] };
}

/** A condition whose columns the file lacks is taken to hold: that says what is wanted, the file what there is. */
function known(rule: MemberRule, names: readonly string[]): MemberRule {
  const isKnown = columnsOf(rule.payload).every((name) => names.includes(name));
  return {
    ...rule,
    payload: isKnown ? rule.payload : {},
    when: rule.when.filter(({ column }) => names.includes(column)),
  };
}

function columnsOf(fields: { readonly [name: string]: FieldRule }): readonly string[] {
  return Object.values(fields).flatMap((rule) => ('column' in rule ? [rule.column] : []));
}

/** The raw values of a row, in the order of `columns`. */
function reader(columns: readonly Column[], names: readonly string[]): (row: TableRow) => RawRow {
  const places = columns.map((column) => ({ column, index: names.indexOf(column.name) }));
  return ({ values }) => places.map(({ column, index }) => rawOf(column, values[index] ?? null));
}

/** Rule 7 turned round: a row of a list of what is held leaves nobody out. */
function holding(map: (row: TableRow) => MappedRow): (row: TableRow) => MappedRow {
  return inWords((row) => {
    const mapped = map(row);
    if (mapped.members.length === 0) throw broken({ rule: 'row-without-member' });
    return mapped;
  });
}

function inWords(map: (row: TableRow) => MappedRow): (row: TableRow) => MappedRow {
  return (row) => {
    try {
      return map(row);
    } catch (error) {
      throw error instanceof RowFailure ? new RetlError(error.code, error.details) : error;
    }
  };
}

function keyOf({ line }: TableRow): string {
  return `["${line}"]`;
}

function requireColumns(wanted: readonly string[], names: readonly string[]): void {
  const missing = [...new Set(wanted.filter((name) => !names.includes(name)))];
  if (missing.length > 0) throw broken({ rule: 'missing-columns', columns: missing });
}

function broken(details: { readonly rule: string; readonly columns?: readonly string[] }): RetlError {
  return new RetlError('data.baseline-file', details);
}
