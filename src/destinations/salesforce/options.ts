/** What a mirror says about the object that its members are records of. */

import { z } from 'zod';

/** API names: letters, digits and underscores; a relationship's field (`Account.Key__c`) has a dot. */
const objectName = z.string().regex(/^[A-Za-z]\w*$/, 'must be an API name such as `Contact` or `Member__c`');
const fieldName = z
  .string()
  .regex(/^[A-Za-z]\w*(?:\.[A-Za-z]\w*)?$/, 'must be the API name of a field, such as `Plan__c`');

export const salesforceOptionsSchema = z.strictObject({
  object: objectName.describe('API name of the object, such as Contact or Member__c'),
  external_id: objectName.describe(
    'API name of the external ID field that tells members apart: it holds the one identity field of the mapping',
  ),
  columns: z
    .record(z.string(), fieldName)
    .default({})
    .describe('API name of a field, where it has another name than the mapping’s'),
  identity_folding: z
    .array(z.enum(['case', 'nfc', 'nfkc']))
    .default(['case'])
    .describe('[case], or [] where the external ID field is case-sensitive; checked against the object'),
  missing: z
    .enum(['rejected', 'accepted'])
    .default('rejected')
    .describe(
      'what a removal of a record that cannot be found is; accepted is your word that the account sees every record of the object',
    ),
  poll_every_ms: z
    .int()
    .min(100)
    .max(86_400_000)
    .default(10_000)
    .describe('milliseconds before a job is asked about first; later pauses grow'),
  max_jobs: z.int().min(1).max(1_000).default(10).describe('jobs that may be open at one time'),
});
export type SalesforceOptions = z.output<typeof salesforceOptionsSchema>;

/** API name of a payload's field, that of the identity aside. */
export function columnOf({ columns }: SalesforceOptions, field: string): string {
  return Object.hasOwn(columns, field) ? (columns[field] ?? field) : field;
}

export function checkFields(
  options: SalesforceOptions,
  identity: readonly string[],
  payload: readonly string[],
): readonly string[] {
  const problems: string[] = [];
  if (identity.length !== 1)
    problems.push(
      'external_id: one field tells records apart, so that the mapping must have one identity field',
    );
  const names = payload.filter((field) => !identity.includes(field)).map((field) => columnOf(options, field));
  const seen = new Set([options.external_id.toLowerCase(), 'id']);
  for (const name of names) {
    if (!fieldName.safeParse(name).success)
      problems.push(`columns: "${name}" is not the API name of a field; name one for it`);
    if (seen.has(name.toLowerCase())) problems.push(`columns: two fields would be written to "${name}"`);
    seen.add(name.toLowerCase());
  }
  const known = new Set([...identity, ...payload]);
  for (const field of identity)
    if (columnOf(options, field) !== field && columnOf(options, field) !== options.external_id)
      problems.push(`columns: "${field}" is the identity, which is written to ${options.external_id}`);
  for (const field of Object.keys(options.columns))
    if (!known.has(field)) problems.push(`columns: "${field}" is not a field of the mapping`);
  return problems;
}
