/**
 * What an ended job says of each operation. Its tables come in no order and are matched by ID. A row that stands in none of
 * them, in two, or twice, or that was never sent, makes all of it no answer (design.md section 9). Pure.
 */

import type { Operation, OperationOutcome } from '../port.ts';
import { readCsv } from './csv.ts';
import type { SalesforceOptions } from './options.ts';
import { externalIdOf } from './payload.ts';
import type { Target } from './progress.ts';

export interface Tables {
  readonly successful: string;
  readonly failed: string;
  /** `null`: of a job that has processed everything. */
  readonly unprocessed: string | null;
}

export type Attributed =
  | {
      readonly kind: 'settled';
      readonly outcomes: readonly OperationOutcome[];
      /** Operations of the job that it says it has not looked at. */
      readonly unprocessed: number;
    }
  | { readonly kind: 'unknown'; readonly code: string };

interface Row {
  readonly key: string;
  readonly outcome: OperationOutcome | 'unprocessed';
}

export interface Sent {
  readonly operations: readonly Operation[];
  /** Of a removal. */
  readonly targets: readonly Target[] | null;
}

/** `words` cleans the org's before they are kept; `rest`: what is true of rows that were not processed. */
export function attribute(
  tables: Tables,
  sent: Sent,
  options: SalesforceOptions,
  words: (text: string) => string,
  rest: OperationOutcome,
): Attributed {
  const rows = readTables(tables, sent, options, words);
  if (rows === null) return unknown('results-malformed');
  const byKey = new Map<string, Row['outcome']>();
  for (const { key, outcome } of rows) {
    if (byKey.has(key)) return unknown('reply-repeats-ids');
    byKey.set(key, outcome);
  }
  const outcomes: OperationOutcome[] = [];
  let [told, unprocessed] = [0, 0];
  for (const [index, operation] of sent.operations.entries()) {
    const target =
      sent.targets === null ? externalIdOf(operation).id : (sent.targets[index] ?? { rejected: 'lost' });
    if (typeof target !== 'string') {
      outcomes.push(beforehand(target));
      continue;
    }
    const outcome = byKey.get(sent.targets === null ? target : recordKey(target));
    if (outcome === undefined) return unknown('reply-lacks-ids');
    told += 1;
    if (outcome === 'unprocessed') unprocessed += 1;
    outcomes.push(outcome === 'unprocessed' ? rest : outcome);
  }
  if (told !== byKey.size) return unknown('reply-adds-ids');
  return { kind: 'settled', outcomes, unprocessed };
}

/** What is settled without a job: a record that is gone, or one that cannot be told. */
export function beforehand(target: Exclude<Target, string>): OperationOutcome {
  if ('gone' in target) return { kind: 'accepted' };
  return { kind: 'rejected', code: target.rejected, reason: target.rejected };
}

function readTables(
  { successful, failed, unprocessed }: Tables,
  { targets }: Sent,
  { external_id }: SalesforceOptions,
  words: (text: string) => string,
): readonly Row[] | null {
  const removal = targets !== null;
  const column = removal ? 'Id' : external_id;
  const good = readTable(successful, column, removal, () => ({ kind: 'accepted' }));
  const bad = readTable(failed, column, removal, (error) => failure(error, removal, words));
  const rest = unprocessed === null ? [] : readTable(unprocessed, column, removal, () => 'unprocessed');
  return good === null || bad === null || rest === null ? null : [...good, ...bad, ...rest];
}

function readTable(
  text: string,
  column: string,
  removal: boolean,
  outcome: (error: string) => Row['outcome'],
): readonly Row[] | null {
  const table = readCsv(text);
  if (table === null) return null;
  if (table.rows.length === 0) return [];
  const names = table.header.map((name) => name.toLowerCase());
  const at = names.indexOf(column.toLowerCase());
  const error = names.indexOf('sf__error');
  if (at < 0) return null;
  return table.rows.map((row) => {
    const id = row[at] ?? '';
    return { key: removal ? recordKey(id) : id, outcome: outcome(row[error] ?? '') };
  });
}

/** A record has an ID of 15 characters, and the same with 3 more behind it. */
function recordKey(id: string): string {
  return id.slice(0, 15);
}

/** The error's code stands before its first colon. A record that is deleted already is what a removal wants. */
function failure(error: string, removal: boolean, words: (text: string) => string): OperationOutcome {
  if (removal && error.startsWith('ENTITY_IS_DELETED:')) return { kind: 'accepted' };
  const code = /^([A-Z_]{1,60}):/.exec(error)?.[1];
  return {
    kind: 'rejected',
    code: code === undefined ? 'row-rejected' : `row-rejected:${code}`,
    reason: words(error),
  };
}

function unknown(code: string): Attributed {
  return { kind: 'unknown', code };
}
