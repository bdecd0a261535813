/** What comparing an index with the log has found: what is other, what was compared and how, and what was not. */

import type { IndexAnswer } from './index-work.ts';
import type { Output } from './output.ts';

export type Compared = Extract<IndexAnswer, { readonly kind: 'verified' }>;

/** @returns whether the rows are the same, as many as was written down, and what readers see */
export function showCompared(output: Pick<Output, 'line' | 'style'>, compared: Compared): boolean {
  const { rows, oneByOne, position, boundary, missing, unexpected, counted, artifactCount, astray } =
    compared;
  const isSame = missing === '0' && unexpected === '0';
  const isCounted = counted === rows && (artifactCount === null || artifactCount === rows);
  output.line(
    isSame
      ? output.style('green', `${rows} rows at position ${position}, as the log has them.`)
      : output.style('red', `${missing} rows are missing or other, ${unexpected} ought not to be there.`),
  );
  if (boundary !== null)
    output.line(
      `${oneByOne} of ${rows} rows were compared row by row. Of what came up to position ${boundary} the log keeps only ` +
        'who was held then: that was compared with what these rows leave; what they say beyond it was not.',
    );
  if (!isCounted)
    output.line(
      `${output.style('red', `${rows} rows`)} stand there; the build says ${counted}, its checkpoint ${artifactCount ?? counted}.`,
    );
  if (astray !== null)
    output.line(
      `${output.style('red', astray)} Readers are not led to these rows; docs/indexes.md says of each rule what to do.`,
    );
  return isSame && isCounted && astray === null;
}
