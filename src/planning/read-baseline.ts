/**
 * Reads a file that lists the members of a target: once to say what is in it, and what is wrong, and once more to import it.
 * Both go the same way, so that what was shown is what is imported.
 */

import type { BaselineSummary } from '../domain/baseline.ts';
import { RetlError } from '../domain/errors.ts';
import type { MirrorSettings } from '../domain/settings.ts';
import type { Column } from '../domain/source-row.ts';
import { type BaselineMapping, compileBaseline, mappedBaseline } from './baseline-mapping.ts';
import { type BaselineTable, baselineTable, type TableRow } from './baseline-table.ts';
import { DesiredSet } from './desired-set.ts';
import { LineFailures } from './line-failures.ts';
import { MemberTable } from './member-table.ts';
import { type LoadProjection, type MemberForm, type RowSink, rowReader } from './row-reader.ts';

export interface BaselineInput {
  readonly settings: MirrorSettings;
  readonly path: string;
  /** Rows are members already, `{"identity": {…}}`, and not rows of the query. */
  readonly isMapped: boolean;
  /** The columns of the query; its rows are not read. */
  readonly describe: () => Promise<readonly Column[]>;
  readonly projection: LoadProjection;
  readonly form: MemberForm;
  /** Bytes of one stored payload, at most. */
  readonly limits: { readonly upsert: number; readonly remove: number };
}

/** Looks at the whole file, as the import will. @throws RetlError `data.*`, `source.*`, `config.*` */
export async function summariseBaseline(input: BaselineInput): Promise<BaselineSummary> {
  const members = new MemberTable();
  const set = new DesiredSet(members, { ...input.limits, keyTypes: null, removesEach: true }, null);
  const read = await readBaseline(input, set, async () => undefined);
  set.check('[]');
  const { added, collapsed } = members.counts;
  return { rows: set.sourceRows, members: added, collapsed, ...read };
}

/**
 * Puts each row of the file into `sink`; `drain` is waited for between rows.
 * @throws RetlError; of rows that break a rule after the last one was looked at.
 */
export async function readBaseline(
  input: BaselineInput,
  sink: RowSink,
  drain: () => Promise<void>,
): Promise<Pick<BaselineSummary, 'unknown' | 'digest'>> {
  const table = baselineTable(input.path);
  const failures = new LineFailures();
  let mapping: BaselineMapping | null = null;
  let add: (row: TableRow) => void = () => undefined;
  for await (const row of table.rows()) {
    if (mapping === null) {
      mapping = await compile(input, table);
      add = rowReader(mapping.map, formOf(input.form, mapping), sink, failures);
    }
    failures.line = row.line;
    add(row);
    await drain();
  }
  failures.throwIfAny();
  // A file that lists nobody is an export that failed far more often than a target that is empty.
  if (mapping === null) throw new RetlError('data.baseline-file', { rule: 'no-rows' });
  return { unknown: mapping.unknown, digest: table.digest() };
}

async function compile(input: BaselineInput, { columns }: BaselineTable): Promise<BaselineMapping> {
  if (input.isMapped) return mappedBaseline(columns);
  return compileBaseline(input.settings, await input.describe(), columns, input.projection);
}

/** A payload that is not known in full is never sent, and need not fit. */
function formOf(form: MemberForm, { unknown }: BaselineMapping): MemberForm {
  if (unknown.length === 0 || form.payloadSchemas?.remove === undefined) return form;
  return { ...form, payloadSchemas: { remove: form.payloadSchemas.remove } };
}
