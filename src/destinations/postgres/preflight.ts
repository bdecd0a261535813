/**
 * Everything about a target table that would fail, lose or change a member later, found before the first write and
 * reported all at once: what a missing DELETE right does is otherwise seen only after all additions.
 */

import type { MappedFields, PreflightProblem } from '../port.ts';
import { identityFits, unfitness } from './columns.ts';
import { type QualifiedName, quoteName, quoteQualified } from './identifier.ts';
import { columnOf, type PostgresOptions, sameNames } from './options.ts';
import { columnNamed, type Table, type TableColumn, WRITABLE_KINDS } from './table.ts';

/** What is known of the fields before the first request; `identity` is `null` where nothing is. */
export interface KnownFields {
  readonly identity: readonly string[] | null;
  readonly rules: readonly MappedFields[];
}

export interface Subject {
  readonly name: QualifiedName;
  readonly table: Table;
  readonly options: PostgresOptions;
  readonly fields: KnownFields;
  /** Quoted name of the role that writes. */
  readonly role: string;
}

/** A table that cannot be written to at all is one problem; only a writable one is looked at further. */
export function tableProblems(subject: Subject): readonly PreflightProblem[] {
  const { table } = subject;
  if (!WRITABLE_KINDS.includes(table.kind)) {
    return [
      problem(
        'table-kind',
        `${named(subject)} is not an ordinary or partitioned table.`,
        'Name the table itself: views and foreign tables cannot be upserted into.',
      ),
    ];
  }
  return [
    ...durabilityProblems(subject),
    ...effectProblems(subject),
    ...rightsProblems(subject),
    ...fieldProblems(subject),
    ...requiredProblems(subject),
    ...identityProblems(subject),
  ];
}

function problem(code: string, message: string, remedy: string): PreflightProblem {
  return { code, message, remedy };
}

function named(subject: Subject): string {
  return quoteQualified(subject.name);
}

function durabilityProblems(subject: Subject): readonly PreflightProblem[] {
  const { table } = subject;
  const problems: PreflightProblem[] = [];
  if (table.readOnly) {
    problems.push(
      problem(
        'read-only',
        'The server is a standby, or the role is read-only.',
        'Connect to the primary; for the role: ALTER ROLE … RESET default_transaction_read_only.',
      ),
    );
  }
  if (table.persistence !== 'p') {
    problems.push(
      problem(
        'table-unlogged',
        `${named(subject)} is emptied by a crash of the server.`,
        `ALTER TABLE ${named(subject)} SET LOGGED;`,
      ),
    );
  }
  return problems;
}

/** Writes that would be hidden, turned into others, or reach other tables. */
function effectProblems(subject: Subject): readonly PreflightProblem[] {
  const { table, options, role } = subject;
  const problems: PreflightProblem[] = [];
  if (table.rowSecurity) {
    problems.push(
      problem(
        'row-security',
        `Row-level security hides rows of ${named(subject)} from the role.`,
        `ALTER ROLE ${role} BYPASSRLS; or mirror into a table without policies.`,
      ),
    );
  }
  if (table.rewriteRules) {
    problems.push(
      problem(
        'table-rules',
        `${named(subject)} has rewrite rules for INSERT, UPDATE or DELETE.`,
        'Drop the rules, or write triggers instead.',
      ),
    );
  }
  if (table.foreignPartition) {
    problems.push(
      problem(
        'foreign-partition',
        `A partition of ${named(subject)} is a foreign table.`,
        'Detach it: foreign tables cannot be upserted into.',
      ),
    );
  }
  if (table.cascadesTo.length > 0 && !options.allow_cascade) {
    problems.push(
      problem(
        'delete-cascades',
        `A removal would delete or change rows of ${table.cascadesTo.join(', ')}.`,
        'Set allow_cascade: true if that is meant, or change their foreign keys to ON DELETE NO ACTION.',
      ),
    );
  }
  return problems;
}

function rightsProblems(subject: Subject): readonly PreflightProblem[] {
  const { table, role, name } = subject;
  const problems: PreflightProblem[] = [];
  const lacks = (code: string, what: string, grant: string): void => {
    problems.push(problem(code, `The role lacks ${what}.`, `${grant} TO ${role};`));
  };
  if (!table.mayUseSchema) {
    const schema = quoteName(name.schema);
    lacks('privilege-schema', `USAGE on schema ${schema}`, `GRANT USAGE ON SCHEMA ${schema}`);
  }
  if (!table.mayDelete) {
    lacks('privilege-delete', `DELETE on ${named(subject)}`, `GRANT DELETE ON ${named(subject)}`);
  }
  // ON CONFLICT counts EXCLUDED.column as reading the column: every written one must be readable.
  const rights = [
    ['SELECT', writtenColumns(subject).filter((column) => !column.maySelect)],
    ['INSERT', writtenColumns(subject).filter((column) => !column.mayInsert)],
    ['UPDATE', updatedColumns(subject).filter((column) => !column.mayUpdate)],
  ] as const;
  for (const [right, columns] of rights) {
    if (columns.length === 0) continue;
    const list = columns.map((column) => quoteName(column.name)).join(', ');
    lacks(
      `privilege-${right.toLowerCase()}`,
      `${right} on ${list} of ${named(subject)}`,
      `GRANT ${right} (${list}) ON ${named(subject)}`,
    );
  }
  const barred = unwrittenColumns(subject).filter((column) => column.sequenceBarred);
  for (const column of barred) {
    lacks(
      'privilege-sequence',
      `USAGE on the sequence that column ${quoteName(column.name)} draws its default from`,
      'GRANT USAGE ON SEQUENCE …',
    );
  }
  return problems;
}

function fieldProblems(subject: Subject): readonly PreflightProblem[] {
  const problems: PreflightProblem[] = [];
  for (const field of allFields(subject)) {
    const name = columnOf(subject.options, field);
    const column = columnNamed(subject.table, name);
    if (column === undefined) {
      problems.push(
        problem(
          'unknown-column',
          `${named(subject)} has no column ${quoteName(name)}, for field ${field}.`,
          `Add the column, or name another one: columns: { ${field}: … }.`,
        ),
      );
    } else if (column.generated || column.identityAlways) {
      problems.push(
        problem(
          'column-generated',
          `Column ${quoteName(name)} is generated and takes no values.`,
          `Map another column, or for an identity column: ALTER TABLE ${named(subject)} ALTER COLUMN ${quoteName(name)} SET GENERATED BY DEFAULT;`,
        ),
      );
    } else {
      const unfit = unfitness(column);
      if (unfit === null) continue;
      problems.push(problem('column-type', `Column ${quoteName(name)} ${unfit.why}.`, unfit.remedy));
    }
  }
  return problems;
}

/** A row that a member rule inserts must have a value for every column that needs one. */
function requiredProblems(subject: Subject): readonly PreflightProblem[] {
  const missing = new Set<string>();
  for (const rule of subject.fields.rules) {
    const given = [...rule.identity, ...rule.payload].map((field) => columnOf(subject.options, field));
    for (const column of subject.table.columns) {
      const filled = column.hasDefault || column.generated || given.includes(column.name);
      if (column.notNull && !filled) missing.add(column.name);
    }
  }
  return [...missing].map((name) =>
    problem(
      'column-required',
      `Column ${quoteName(name)} is NOT NULL, has no default, and is not mapped.`,
      `Map a field to it, or: ALTER TABLE ${named(subject)} ALTER COLUMN ${quoteName(name)} SET DEFAULT …;`,
    ),
  );
}

function identityProblems(subject: Subject): readonly PreflightProblem[] {
  const { fields, table, options } = subject;
  if (fields.identity === null) {
    return [
      problem(
        'identity-unknown',
        'The identity fields are not known before the first request, for the mapping is a module.',
        'Name them in the destination: identity: [field, …].',
      ),
    ];
  }
  const wanted = fields.identity.map((field) => columnOf(options, field));
  const problems: PreflightProblem[] = [];
  for (const rule of fields.rules) {
    if (sameNames(rule.identity, fields.identity)) continue;
    problems.push(
      problem(
        'identity-differs',
        `Member rules have different identity fields: ${rule.identity.join(', ')}; ${fields.identity.join(', ')}.`,
        'One table has one identity: use one mirror and one table for each.',
      ),
    );
  }
  if (!table.uniqueIndexes.some((index) => index.usable && sameNames(index.columns, wanted))) {
    const list = wanted.map(quoteName).join(', ');
    problems.push(
      problem(
        'identity-not-unique',
        `${named(subject)} has no plain unique index on exactly (${list}); partial, deferrable, invalid ones and expressions do not count.`,
        `CREATE UNIQUE INDEX CONCURRENTLY ON ${named(subject)} (${list});`,
      ),
    );
  }
  for (const column of identityColumns(subject)) {
    if (identityFits(column)) continue;
    problems.push(
      problem(
        'identity-type',
        `Type ${column.type} of column ${quoteName(column.name)} cannot hold identities: several texts can be one value.`,
        'Use text, an integer, numeric, uuid, date, timestamp, boolean, bytea or an enum.',
      ),
    );
  }
  return problems;
}

function allFields({ fields }: Subject): readonly string[] {
  const mapped = fields.rules.flatMap((rule) => [...rule.identity, ...rule.payload]);
  return [...new Set([...(fields.identity ?? []), ...mapped])];
}

function columnsOf(subject: Subject, fields: readonly string[]): readonly TableColumn[] {
  const names = new Set(fields.map((field) => columnOf(subject.options, field)));
  return subject.table.columns.filter((column) => names.has(column.name));
}

/** The identity columns that exist. */
export function identityColumns(subject: Subject): readonly TableColumn[] {
  return columnsOf(subject, subject.fields.identity ?? []);
}

function writtenColumns(subject: Subject): readonly TableColumn[] {
  return columnsOf(subject, allFields(subject));
}

function unwrittenColumns(subject: Subject): readonly TableColumn[] {
  const written = writtenColumns(subject);
  return subject.table.columns.filter((column) => !written.includes(column));
}

/** As `upsertStatement` does: the identity is written again only where there is nothing else, or where it folds. */
function updatedColumns(subject: Subject): readonly TableColumn[] {
  const identity = identityColumns(subject);
  const payload = writtenColumns(subject).filter((column) => !identity.includes(column));
  return payload.length === 0 || subject.options.identity_folding.length > 0
    ? writtenColumns(subject)
    : payload;
}
