/** Members as rows of a job's data: one column for the external ID, one for each other field. Pure. */

import { z } from 'zod';
import type { Operation } from '../port.ts';
import { type Cell, NULL_MARK, writeCsv } from './csv.ts';
import { columnOf, type SalesforceOptions } from './options.ts';

const text = z
  .string()
  .refine((value) => value !== NULL_MARK, 'the text #N/A means null, and cannot be written')
  .refine((value) => value.isWellFormed(), 'must be well-formed Unicode');
const scalar = z.union([text, z.number(), z.boolean(), z.null()]);

/** A record's field holds a scalar. */
export const payloadSchema = z.record(z.string(), scalar);

/** The one value of an identity, as it stands in the external ID field and comes back in results. */
export function externalIdOf({ identity }: Pick<Operation, 'identity'>): {
  readonly field: string;
  readonly id: string;
} {
  const entries: [string, unknown][] = Object.entries(JSON.parse(identity));
  const [one, ...others] = entries;
  if (one === undefined || others.length > 0) throw new Error('an identity must have one field');
  return { field: one[0], id: String(one[1]) };
}

/** Whether the external ID field is one of numbers: SOQL quotes texts only. */
export function isNumericId({ identity }: Pick<Operation, 'identity'>): boolean {
  return Object.values(JSON.parse(identity)).every((value) => typeof value === 'number');
}

/** The data of an upsert job. A field that a row lacks is left alone; null and '' clear it. */
export function upsertCsv(operations: readonly Operation[], options: SalesforceOptions): string {
  const rows = operations.map((operation) => {
    const payload: { readonly [field: string]: unknown } = JSON.parse(operation.payload);
    const { field: own, id } = externalIdOf(operation);
    const cells = new Map<string, Cell>([[options.external_id, { kind: 'text', text: id }]]);
    for (const [field, value] of Object.entries(payload))
      if (field !== own) cells.set(columnOf(options, field), cellOf(value));
    return cells;
  });
  const names = new Set(rows.flatMap((cells) => [...cells.keys()]));
  names.delete(options.external_id);
  const header = [options.external_id, ...[...names].sort()];
  const table = rows.map((cells) => header.map((name): Cell => cells.get(name) ?? { kind: 'absent' }));
  return writeCsv(header, table);
}

function cellOf(value: unknown): Cell {
  if (value === null || value === '') return { kind: 'null' };
  return { kind: 'text', text: String(value) };
}

/** The data of a delete job: record IDs and nothing else. */
export function deleteCsv(records: readonly string[]): string {
  return writeCsv(
    ['Id'],
    records.map((id): readonly Cell[] => [{ kind: 'text', text: id }]),
  );
}
