/** A file that lists members, as a table: NDJSON (one object a line) or CSV (with a header), told apart by the file's name. */

import { parseExactJson } from '../domain/canonical-json.ts';
import { RetlError } from '../domain/errors.ts';
import { InvalidValue } from '../domain/source-row.ts';
import { type CsvField, csvRecord, togglesQuote } from './csv-record.ts';
import { type FileLines, fileLines } from './file-lines.ts';

/** Of one record; a quote that is open for longer was never closed. */
const MOST_LINES = 10_000;

/** As JSON gives it, or a field of CSV; `null` is NULL. */
export type TableValue = unknown;

export interface TableRow {
  /** From 1, as an editor counts; the first of a record of several lines. */
  readonly line: number;
  /** In the order of the table's columns. */
  readonly values: readonly TableValue[];
}

export interface BaselineTable {
  /** Known once the first row is read. */
  readonly columns: readonly string[];
  rows(): AsyncIterable<TableRow>;
  /** SHA-256 of the file, in hex, once its rows have ended. */
  digest(): string;
}

/** @throws RetlError `data.baseline-file` here and from what it returns; a rule and a line, never a value. */
export function baselineTable(path: string): BaselineTable {
  const file = fileLines(path);
  if (/\.(ndjson|jsonl)$/i.test(path)) return new NdjsonTable(file);
  if (/\.csv$/i.test(path)) return new CsvTable(file);
  throw broken('unknown-format', { expected: ['.ndjson', '.jsonl', '.csv'] });
}

class NdjsonTable implements BaselineTable {
  columns: readonly string[] = [];
  constructor(private readonly file: FileLines) {}

  async *rows(): AsyncGenerator<TableRow, void> {
    let line = 0;
    let isFirst = true;
    for await (const text of this.file.lines()) {
      line += 1;
      if (text.trim() === '') continue;
      const row = jsonObject(text, line);
      if (isFirst) this.columns = Object.keys(row);
      isFirst = false;
      yield { line, values: this.#values(row, line) };
    }
  }

  digest(): string {
    return this.file.digest();
  }

  /** Another set of names is no row of this table: a name that is missing by mistake must not pass for NULL. */
  #values(row: { readonly [name: string]: unknown }, line: number): readonly TableValue[] {
    const { columns } = this;
    if (Object.keys(row).length !== columns.length || !columns.every((name) => Object.hasOwn(row, name)))
      throw broken('other-columns', { line });
    return columns.map((name) => row[name]);
  }
}

class CsvTable implements BaselineTable {
  columns: readonly string[] = [];
  constructor(private readonly file: FileLines) {}

  async *rows(): AsyncGenerator<TableRow, void> {
    for await (const { line, text } of this.#records()) {
      const record = csvRecord(text);
      if (record.kind === 'malformed') throw broken('not-csv', { line });
      if (this.columns.length === 0) this.columns = header(record.fields);
      else if (record.fields.length === this.columns.length) yield { line, values: record.fields };
      // An empty line among rows of several columns.
      else if (record.fields.length > 1 || record.fields[0] !== null) throw broken('other-columns', { line });
    }
  }

  digest(): string {
    return this.file.digest();
  }

  /** The text of each record, and the line that it begins in. */
  async *#records(): AsyncGenerator<{ readonly line: number; readonly text: string }, void> {
    let line = 0;
    let begun: string[] = [];
    let isOpen = false;
    for await (const text of this.file.lines()) {
      line += 1;
      begun.push(text);
      if (togglesQuote(text)) isOpen = !isOpen;
      if (isOpen && begun.length < MOST_LINES) continue;
      yield { line: line - begun.length + 1, text: begun.join('\n') };
      begun = [];
      isOpen = false;
    }
    if (begun.length > 0) throw broken('not-csv', { line: line - begun.length + 1 });
  }
}

function header(fields: readonly CsvField[]): readonly string[] {
  const names = fields.map((name) => name ?? '');
  if (names.includes('') || new Set(names).size < names.length) throw broken('header', { line: 1 });
  return names;
}

function jsonObject(text: string, line: number): { readonly [name: string]: unknown } {
  const value = parsed(text, line);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw broken('not-an-object', { line });
  return Object.fromEntries(Object.entries(value));
}

/** Exactly: a number that a double would round is refused. */
function parsed(text: string, line: number): unknown {
  try {
    return JSON.parse(parseExactJson(text));
  } catch (error) {
    const rule = error instanceof InvalidValue && error.rule !== 'malformed' ? error.rule : 'not-json';
    throw broken(rule, { line });
  }
}

function broken(rule: string, details: { readonly [name: string]: number | readonly string[] }): RetlError {
  return new RetlError('data.baseline-file', { rule, ...details });
}
