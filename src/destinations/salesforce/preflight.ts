/** What would fail later, found out before the first write, from the object's own description for this account. */

import type { MappedFields, PreflightProblem } from '../port.ts';
import type { SalesforceApi, Trouble } from './api.ts';
import { columnOf, type SalesforceOptions } from './options.ts';

/** Rights to the object that an upsert and a removal need, as the description names them. */
const RIGHTS: readonly (readonly [string, string])[] = [
  ['createable', 'create'],
  ['updateable', 'change'],
  ['deletable', 'delete'],
  ['queryable', 'read'],
];

export async function preflight(
  api: SalesforceApi,
  options: SalesforceOptions,
  fields: readonly MappedFields[] | undefined,
): Promise<readonly PreflightProblem[]> {
  const described = await api.read(`/sobjects/${options.object}/describe`);
  if (described.kind !== 'ok') return [unreachable(described, options)];
  const object = record(described.value);
  if (!Array.isArray(object.fields))
    return [
      problem('describe-not-understood', 'The org does not describe the object.', 'Check `instance_url`.'),
    ];
  const columns = new Map(object.fields.map((field: unknown) => [nameOf(field), record(field)]));
  return [
    ...rightsProblems(object),
    ...keyProblems(columns, options),
    ...fieldProblems(columns, options, fields),
  ];
}

function unreachable(trouble: Trouble, { object }: SalesforceOptions): PreflightProblem {
  const { code } = trouble;
  if (trouble.kind === 'refused' && trouble.status === 404)
    return problem(
      code,
      `There is no object ${object} for this account.`,
      'Check `object`, and the account’s rights.',
    );
  if (trouble.kind === 'denied' || trouble.kind === 'refused')
    return problem(
      code,
      'Salesforce refuses this account.',
      'Check `auth`, and that the account may use the API.',
    );
  if (code === 'dns-failed' || code === 'tls-failed')
    return problem(code, 'The org cannot be reached.', 'Check `instance_url` and `tls.ca`.');
  return {
    ...problem(
      code,
      'The org cannot be reached, or is busy.',
      'Check `instance_url`, firewalls and API limits.',
    ),
    transient: true,
  };
}

function* rightsProblems(object: Described): Generator<PreflightProblem> {
  for (const [right, word] of RIGHTS)
    if (object[right] === false)
      yield problem(
        `object-not-${right}`,
        `The account may not ${word} records of this object.`,
        `Grant it.`,
      );
}

function* keyProblems(
  columns: ReadonlyMap<string, Described>,
  { external_id, identity_folding }: SalesforceOptions,
): Generator<PreflightProblem> {
  const key = columns.get(external_id.toLowerCase());
  if (key === undefined || (key.externalId !== true && key.idLookup !== true)) {
    yield problem(
      'external-id-missing',
      `${external_id} is not an external ID field of the object.`,
      'Make a field with the attributes External ID and Unique, or name another one.',
    );
    return;
  }
  if (key.unique === false)
    yield problem(
      'external-id-not-unique',
      `${external_id} is not unique: one member could be several records.`,
      'Give the field the attribute Unique.',
    );
  const folds = identity_folding.includes('case');
  if (key.unique === true && (key.caseSensitive === true) === folds && key.type === 'string')
    yield problem(
      'identity-folding-differs',
      `${external_id} ${folds ? 'is' : 'is not'} case-sensitive.`,
      `Set \`identity_folding: ${folds ? '[]' : '[case]'}\`.`,
    );
}

function* fieldProblems(
  columns: ReadonlyMap<string, Described>,
  options: SalesforceOptions,
  fields: readonly MappedFields[] | undefined,
): Generator<PreflightProblem> {
  const names = new Set(fields?.flatMap(({ payload }) => payload.map((field) => columnOf(options, field))));
  for (const name of names) {
    if (name.includes('.')) continue; // a parent by its external ID: the parent's description would tell
    const column = columns.get(name.toLowerCase());
    if (column === undefined)
      yield problem(
        'field-missing',
        `There is no field ${name} for this account.`,
        'Check `columns`, and field-level security.',
      );
    else if (column.createable === false || column.updateable === false)
      yield problem(
        'field-not-writable',
        `The account may not write ${name}.`,
        'Grant it, or leave the field out.',
      );
  }
}

interface Described {
  readonly [name: string]: unknown;
}

function record(value: unknown): Described {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function nameOf(field: unknown): string {
  return String(record(field).name).toLowerCase();
}

function problem(code: string, message: string, remedy: string): PreflightProblem {
  return { code, message, remedy };
}
