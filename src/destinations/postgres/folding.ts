/**
 * Whether the identity columns really compare as the mirror says. The journal tells `A@x` and `a@x` apart unless
 * folding is declared; a column that does not (citext, most ICU collations) would let the removal of one delete the
 * other. And where folding is declared but the column compares exactly, a changed spelling would leave its old row
 * behind. So the server is asked to compare sample texts as the columns do.
 *
 * Samples are no proof for every letter. What is known to remain: the journal's `case` takes ß for ss, citext does not,
 * so an identity that changes from the one spelling to the other leaves its old row behind.
 */

import type { PoolClient } from 'pg';
import { z } from 'zod';
import type { Folding } from '../../domain/folding.ts';
import type { PreflightProblem } from '../port.ts';
import { quoteName } from './identifier.ts';
import type { TableColumn } from './table.ts';

/** Base types whose comparison depends on a collation, or on the type itself. */
const TEXTUAL = ['text', 'varchar', 'bpchar', 'citext'];

interface Comparison {
  readonly case: boolean;
  readonly caseBeyondAscii: boolean;
  readonly nfc: boolean;
  readonly nfkc: boolean;
  /** Texts that no declared folding makes equal: other accents, punctuation. */
  readonly loose: boolean;
}

const comparisonSchema = z.object({
  case: z.boolean(),
  caseBeyondAscii: z.boolean(),
  nfc: z.boolean(),
  nfkc: z.boolean(),
  loose: z.boolean(),
});

/** Samples: pairs that are equal only under the folding; the last are pairs that most ICU collations fold as well. */
const SAMPLES: Readonly<Record<keyof Comparison, readonly (readonly [string, string])[]>> = {
  case: [['A', 'a']],
  caseBeyondAscii: [['\u00c4', '\u00e4']],
  nfc: [['\u00fc', 'u\u0308']],
  nfkc: [['\ufb01', 'fi']],
  loose: [
    ['e', '\u00e9'],
    ['co-op', 'coop'],
    ['a', 'a\u200d'],
    ['\u3042', '\u30a2'],
  ],
};

export async function foldingProblems(
  client: PoolClient,
  columns: readonly TableColumn[],
  declared: readonly Folding[],
): Promise<readonly PreflightProblem[]> {
  const problems: PreflightProblem[] = [];
  for (const column of columns.filter(({ base }) => TEXTUAL.includes(base))) {
    const message = mismatch(await compare(client, column), declared);
    if (message === null) continue;
    problems.push({
      code: 'identity-folding',
      message: `Identity column ${quoteName(column.name)} ${message}`,
      remedy:
        'Set identity_folding to what the column does, or give the column a type that compares exactly (text COLLATE "C") or ignores nothing but case (citext).',
    });
  }
  return problems;
}

async function compare(client: PoolClient, column: TableColumn): Promise<Comparison> {
  if (column.base !== 'citext' && column.foldingCollation === null) return EXACT;
  const type = column.base === 'citext' ? column.type : 'pg_catalog.text';
  const collate = column.foldingCollation === null ? '' : ` COLLATE ${column.foldingCollation}`;
  const values: string[] = [];
  const cast = (text: string): string => `($${values.push(text)}::pg_catalog.text)::${type}${collate}`;
  const tests = Object.entries(SAMPLES).map(([name, pairs]) => {
    const equal = pairs.map(([a, b]) => `${cast(a)} = ${cast(b)}`);
    return `(${equal.join(' OR ')}) AS ${quoteName(name)}`;
  });
  const { rows } = await client.query(`SELECT ${tests.join(', ')}`, values);
  return comparisonSchema.parse(rows[0]);
}

const EXACT: Comparison = { case: false, caseBeyondAscii: false, nfc: false, nfkc: false, loose: false };

function mismatch(actual: Comparison, declared: readonly Folding[]): string | null {
  if (actual.loose) return 'takes texts for equal that differ in more than case or Unicode form.';
  if (actual.case !== actual.caseBeyondAscii) return 'ignores case for some letters only.';
  const wanted = { case: declared.includes('case'), nfkc: declared.includes('nfkc') };
  // NFKC folds whatever NFC does.
  const nfc = declared.includes('nfc') || wanted.nfkc;
  if (actual.case !== wanted.case) return verdict('case', actual.case);
  if (actual.nfkc !== wanted.nfkc) return verdict('compatible Unicode forms (nfkc)', actual.nfkc);
  if (actual.nfc !== nfc) return verdict('Unicode forms (nfc)', actual.nfc);
  return null;
}

function verdict(what: string, folds: boolean): string {
  return folds
    ? `ignores ${what}, which identity_folding does not say.`
    : `tells ${what} apart, though identity_folding says that it does not.`;
}
