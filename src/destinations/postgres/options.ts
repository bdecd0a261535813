/** What a mirror says about its target table. */

import { z } from 'zod';
import { nameFault, parseName, type QualifiedName } from './identifier.ts';

const exactName = z.string().superRefine((name, context) => {
  const fault = nameFault(name);
  if (fault !== null) context.addIssue({ code: 'custom', message: fault });
});

const tableName = z.union([
  z.string().refine((text) => parseName(text) !== null, {
    message:
      'write [schema.]table in lower case, or put a name that has capitals, dots or blanks between double quotes, ' +
      'or write {schema: …, name: …}',
  }),
  z.strictObject({
    schema: exactName.default('public').describe('exactly as it is, without quotes'),
    name: exactName.describe('exactly as it is, without quotes'),
  }),
]);

const folding = z.enum(['case', 'nfc', 'nfkc']);

/** What another table in the target's place does not have, and a mirror may do without; see losses.ts. */
export const LOSSES = [
  'foreign-keys',
  'grants',
  'owner',
  'policies',
  'publications',
  'replica-identity',
  'rules',
  'security-labels',
  'sequences',
  'storage-parameters',
  'subscriptions',
  'triggers',
  'views',
] as const;

export type LossKind = (typeof LOSSES)[number];

export const optionsSchema = z.strictObject({
  table: tableName.describe('the target table; the schema is public where none is named'),
  columns: z
    .record(z.string(), exactName)
    .default({})
    .describe('column of a field, where it has another name than the field'),
  identity: z
    .array(z.string())
    .min(1)
    .optional()
    .describe('the identity fields; needed only where the mapping is a module'),
  identity_folding: z
    .array(folding)
    .default([])
    .describe(
      'how the identity columns compare (citext, case-insensitive collations); checked against the table',
    ),
  allow_cascade: z
    .boolean()
    .default(false)
    .describe('lets a removal reach into other tables through ON DELETE CASCADE, SET NULL or SET DEFAULT'),
  fence_table: tableName
    .optional()
    .describe('the fence table; retl_fence in the schema of the table by default'),
  swap: z
    .enum(['replace', 'rename'])
    .optional()
    .describe(
      'replace or rename; for native-replace: the finish replaces the contents of the table, or puts another table into its place',
    ),
  swap_timeout_ms: z
    .int()
    .min(1)
    .max(86_400_000)
    .default(1_800_000)
    .describe('milliseconds for each statement of the swap'),
  accept_losses: z
    .array(z.enum(LOSSES))
    .default([])
    .describe('with swap: rename, the kinds of things that the table may lose'),
});

export type PostgresOptions = z.infer<typeof optionsSchema>;

export function targetTable(options: PostgresOptions): QualifiedName {
  return resolve(options.table, 'public');
}

export function fenceTable(options: PostgresOptions): QualifiedName {
  const { schema } = targetTable(options);
  return resolve(options.fence_table ?? { schema, name: 'retl_fence' }, schema);
}

function resolve(table: string | QualifiedName, defaultSchema: string): QualifiedName {
  if (typeof table !== 'string') return table;
  const [first = '', second] = parseName(table) ?? [];
  return second === undefined ? { schema: defaultSchema, name: first } : { schema: first, name: second };
}

/** The column that a field is written to. */
export function columnOf(options: PostgresOptions, field: string): string {
  return Object.hasOwn(options.columns, field) ? (options.columns[field] ?? field) : field;
}

/** Problems, in words, of options against the names of the mapped fields. */
export function checkFields(
  options: PostgresOptions,
  identity: readonly string[],
  payload: readonly string[],
): readonly string[] {
  const fields = [...new Set([...identity, ...payload])];
  const problems: string[] = [];
  if (identity.length === 0) problems.push('a table needs at least one identity field');
  for (const field of fields) {
    // The server cuts longer field names too, and would then find no value under the shortened one.
    const fault = nameFault(field) ?? nameFault(columnOf(options, field));
    if (fault !== null) problems.push(`field ${JSON.stringify(field)}: ${fault}`);
  }
  for (const field of Object.keys(options.columns)) {
    if (!fields.includes(field)) problems.push(`columns: no mapped field is named ${JSON.stringify(field)}`);
  }
  problems.push(...sharedColumns(options, fields));
  if (options.accept_losses.length > 0 && options.swap !== 'rename') {
    problems.push('accept_losses: nothing is lost without `swap: rename`');
  }
  if (options.identity !== undefined && !sameNames(options.identity, identity)) {
    problems.push(`identity: the mapping's identity fields are ${identity.join(', ')}`);
  }
  return problems;
}

function sharedColumns(options: PostgresOptions, fields: readonly string[]): readonly string[] {
  const taken = new Map<string, string>();
  const problems: string[] = [];
  for (const field of fields) {
    const column = columnOf(options, field);
    const other = taken.get(column);
    if (other === undefined) taken.set(column, field);
    else problems.push(`fields ${other} and ${field} are written to one column, ${column}`);
  }
  return problems;
}

/** Whether two lists hold the same names, in any order. */
export function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return new Set(a).size === new Set(b).size && a.every((name) => b.includes(name));
}

/**
 * Of a module's members, whose identity fields the options name (of rules a removal is the identity): an upsert that lacks one of them
 * could never be removed, and a removal that has others is refused by the writer, after all additions. `undefined`: not named.
 */
export function payloadSchemas({ identity }: PostgresOptions) {
  if (identity === undefined) return undefined;
  const schema = (isWhole: boolean) =>
    z.unknown().superRefine((payload, context) => {
      const fields = new Map<string, unknown>(Object.entries(Object(payload)));
      const blame = (field: string, message: string) =>
        context.addIssue({ code: 'custom', path: [field], message });
      for (const field of identity) {
        if ((fields.get(field) ?? null) === null) blame(field, 'a part of the identity is missing');
      }
      for (const field of isWhole ? fields.keys() : []) {
        if (!identity.includes(field)) blame(field, 'no part of the identity');
      }
    });
  return { upsert: schema(false), remove: schema(true) };
}
