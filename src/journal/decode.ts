/** Decoders of what PostgreSQL returns: the only place of the journal where a shape is asserted, after checking it. */

export type Row = Record<string, unknown>;

function fail(what: string): never {
  throw new Error(`the journal returned no ${what}: is the schema of another version?`);
}

export function text(row: Row, column: string): string {
  const value = row[column];
  return typeof value === 'string' ? value : fail(column);
}

export function textOrNull(row: Row, column: string): string | null {
  const value = row[column];
  return value === null || value === undefined ? null : text(row, column);
}

export function number(row: Row, column: string): number {
  const value = row[column];
  const n = typeof value === 'string' ? Number(value) : value;
  return typeof n === 'number' && Number.isFinite(n) ? n : fail(column);
}

export function numberOrNull(row: Row, column: string): number | null {
  const value = row[column];
  return value === null || value === undefined ? null : number(row, column);
}

export function big(row: Row, column: string): bigint {
  const value = row[column];
  return typeof value === 'string' || typeof value === 'number' ? BigInt(value) : fail(column);
}

export function bigOrNull(row: Row, column: string): bigint | null {
  const value = row[column];
  return value === null || value === undefined ? null : big(row, column);
}

export function flag(row: Row, column: string): boolean {
  const value = row[column];
  return typeof value === 'boolean' ? value : fail(column);
}

export function date(row: Row, column: string): Date {
  const value = row[column];
  return value instanceof Date ? value : fail(column);
}

export function dateOrNull(row: Row, column: string): Date | null {
  const value = row[column];
  return value === null || value === undefined ? null : date(row, column);
}

export function bytes(row: Row, column: string): Buffer {
  const value = row[column];
  return Buffer.isBuffer(value) ? value : fail(column);
}

export function bytesOrNull(row: Row, column: string): Buffer | null {
  const value = row[column];
  return value === null || value === undefined ? null : bytes(row, column);
}

export function texts(row: Row, column: string): readonly string[] {
  const value = row[column];
  return Array.isArray(value) && value.every((v) => typeof v === 'string') ? value : fail(column);
}

/** The first of the rows, for statements that always return one. */
export function one(rows: readonly Row[]): Row {
  return rows[0] ?? fail('row');
}

/** A jsonb value that a function returned. */
export function object(value: unknown): Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : fail('object');
}
