/**
 * Which records the members of a removal are. A delete job takes record IDs only, so they are looked up by the external ID
 * just before, deleted records in the recycle bin included: a record that is seen there is provably gone already.
 */

import { canonicalString } from '../../domain/canonical-json.ts';
import { type Folding, foldIdentity } from '../../domain/folding.ts';
import type { Operation } from '../port.ts';
import type { Called, SalesforceApi } from './api.ts';
import type { SalesforceOptions } from './options.ts';
import { externalIdOf, isNumericId } from './payload.ts';
import type { Target } from './progress.ts';

/** Records asked about in one query, and UTF-16 units of its encoded text: a URL may have 16,384 bytes with its headers. */
const MOST_VALUES = 200;
const MOST_QUERY = 6_000;
/** Pages of one query's answer; more would mean that one external ID has very many records. */
const MOST_PAGES = 20;

interface Found {
  readonly id: string;
  readonly deleted: boolean;
}

/**
 * One target per operation, in their order.
 * @param late whether the time for further calls is over: everything so far has only been read.
 */
export async function findTargets(
  api: SalesforceApi,
  options: SalesforceOptions,
  operations: readonly Operation[],
  late: () => boolean,
): Promise<Called<readonly Target[]>> {
  const found = new Map<string, Found[]>();
  for (const query of queries(options, operations)) {
    let next: string | null = `/queryAll?q=${encodeURIComponent(query)}`;
    for (let pages = 0; next !== null; pages += 1) {
      if (late() || pages === MOST_PAGES) return { kind: 'later', code: 'lookup-too-slow', afterMs: null };
      const page = await api.read(next);
      if (page.kind !== 'ok') return page;
      const read = readPage(page.value, options, found);
      if (read === null) return { kind: 'unsure', code: 'query-not-understood' };
      next = read.next;
    }
  }
  const targets = operations.map((operation): Target => {
    const records = found.get(key(externalIdOf(operation).id, options.identity_folding)) ?? [];
    return targetOf(records, options);
  });
  return { kind: 'ok', value: targets };
}

function targetOf(records: readonly Found[], { missing }: SalesforceOptions): Target {
  const live = records.filter(({ deleted }) => !deleted);
  const [one, ...others] = live;
  if (others.length > 0) return { rejected: 'several-records' };
  if (one !== undefined) return one.id;
  if (records.length > 0 || missing === 'accepted') return { gone: true };
  return { rejected: 'record-not-found' };
}

function* queries(options: SalesforceOptions, operations: readonly Operation[]): Generator<string> {
  const { object, external_id } = options;
  const select = `SELECT Id, IsDeleted, ${external_id} FROM ${object} WHERE ${external_id} IN `;
  let values: string[] = [];
  let length = 0;
  for (const operation of operations) {
    const { id } = externalIdOf(operation);
    const value = isNumericId(operation) ? id : soqlText(id);
    const size = encodeURIComponent(value).length + 3;
    if (values.length === MOST_VALUES || (values.length > 0 && length + size > MOST_QUERY)) {
      yield `${select}(${values.join(',')})`;
      values = [];
      length = 0;
    }
    values.push(value);
    length += size;
  }
  if (values.length > 0) yield `${select}(${values.join(',')})`;
}

const ESCAPES: { readonly [char: string]: string } = {
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\b': '\\b',
  '\f': '\\f',
};

/** A text literal of SOQL: nothing in it can end it. */
export function soqlText(text: string): string {
  const escaped = text
    .replaceAll(/['"\\]/g, '\\$&')
    .replaceAll(/[\n\r\t\b\f]/g, (char) => ESCAPES[char] ?? char);
  return `'${escaped}'`;
}

/** Adds a page's records to `found`; `null` where the page cannot be understood. */
function readPage(
  page: unknown,
  options: SalesforceOptions,
  found: Map<string, Found[]>,
): { readonly next: string | null } | null {
  if (typeof page !== 'object' || page === null || !('records' in page) || !('done' in page)) return null;
  if (!Array.isArray(page.records)) return null;
  for (const record of page.records) {
    const { Id: id, IsDeleted: deleted, [options.external_id]: external } = fieldsOf(record);
    if (typeof id !== 'string' || !/^[A-Za-z0-9]{15}(?:[A-Za-z0-9]{3})?$/.test(id)) return null;
    if (typeof deleted !== 'boolean' || (typeof external !== 'string' && typeof external !== 'number'))
      return null;
    const name = key(String(external), options.identity_folding);
    found.set(name, [...(found.get(name) ?? []), { id, deleted }]);
  }
  if (page.done === true) return { next: null };
  const next = 'nextRecordsUrl' in page ? page.nextRecordsUrl : null;
  return typeof next === 'string' && /^\/services\/data\/[\w./-]+$/.test(next) ? { next } : null;
}

function fieldsOf(record: unknown): { readonly [name: string]: unknown } {
  return typeof record === 'object' && record !== null ? { ...record } : {};
}

function key(id: string, folding: readonly Folding[]): string {
  return foldIdentity(canonicalString(id), folding);
}
