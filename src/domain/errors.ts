/**
 * Every error code of the project, with its meaning and remedy: the README's list is made from this table.
 *
 * A `RetlError` carries a code, and details that are names, counts, places and hashes. It never carries a row's value,
 * an identity, a secret or a vendor's own words.
 */

/** What a caller may do about an error. `retry`: transient; `fix`: configuration or data must change first. */
export type Recourse = 'retry' | 'fix';

interface CodeInfo {
  readonly meaning: string;
  readonly remedy: string;
  readonly recourse: Recourse;
}

export const ERROR_CODES = {
  // configuration
  'config.invalid': {
    meaning: 'The configuration has errors; all of them are listed with file and path.',
    remedy: 'Mend each listed place; `retl check` lists them again.',
    recourse: 'fix',
  },
  'config.secret': {
    meaning: 'A secret reference points to an environment variable or file that is not there.',
    remedy: 'Set the variable or create the file where the worker runs.',
    recourse: 'fix',
  },
  'config.unknown-mirror': {
    meaning: 'No mirror of this name is configured where the worker runs.',
    remedy: 'Check the name; `retl check` lists the mirrors.',
    recourse: 'fix',
  },
  // source
  'source.connect': {
    meaning: 'The source database cannot be reached or refuses the connection.',
    remedy: 'Check host, port, credentials and network; the run retries.',
    recourse: 'retry',
  },
  'source.lost': {
    meaning: 'The source connection ended before the query was read whole; nothing was sent.',
    remedy: 'None needed: the next attempt reads the whole query again.',
    recourse: 'retry',
  },
  'source.query': {
    meaning: 'The source refuses the query.',
    remedy: 'Run the query by hand as the same user; the SQLSTATE is in the details.',
    recourse: 'fix',
  },
  'source.duplicate-column': {
    meaning: 'Two columns of the query have one name.',
    remedy: 'Give each column its own name with AS.',
    recourse: 'fix',
  },
  // data
  'data.invalid-value': {
    meaning:
      'A value has no exact representation in a request (NaN, infinity, NUL, lone surrogate, inexact number).',
    remedy: 'Cast or filter the column in the query; the details name rule, column and key hash.',
    recourse: 'fix',
  },
  'data.invalid-row': {
    meaning: 'A row does not pass the row schema or the mapping.',
    remedy: 'Mend the row at the source, or exclude it on purpose with `when`.',
    recourse: 'fix',
  },
  'data.null-key': {
    meaning: 'A key column or an identity field is NULL or empty where it must not be.',
    remedy: 'Filter such rows in the query, or choose another key.',
    recourse: 'fix',
  },
  'data.duplicate-key': {
    meaning: 'Two rows of the snapshot have the same source key.',
    remedy: 'Make the key unique: group in the query or add a key column.',
    recourse: 'fix',
  },
  'data.key-too-long': {
    meaning: 'A source key is longer than 2,000 bytes.',
    remedy: 'Use a shorter key, for example a hash of the long column.',
    recourse: 'fix',
  },
  'data.key-type-changed': {
    meaning: 'A key column has another type than in the last promoted generation.',
    remedy: 'Cast the column back in the query, or start the mirror on a new target.',
    recourse: 'fix',
  },
  'data.conflicting-payloads': {
    meaning: 'Two rows give different payloads for one identity.',
    remedy: 'Make the query return one row per identity, or widen the identity.',
    recourse: 'fix',
  },
  'data.operation-too-large': {
    meaning: 'One upsert or removal alone is larger than the byte limit of a request.',
    remedy: 'Raise `batch.bytes` within the provider’s limit, or send fewer fields.',
    recourse: 'fix',
  },
  'data.unknown-column': {
    meaning: 'The key or the mapping names a column that the query does not return.',
    remedy: 'Correct the name; the details list the columns there are.',
    recourse: 'fix',
  },
} as const satisfies Record<string, CodeInfo>;

export type ErrorCode = keyof typeof ERROR_CODES;

export type ErrorDetails = { readonly [key: string]: string | number | boolean | readonly string[] };

/** An error that a user can act on. */
export class RetlError extends Error {
  override readonly name = 'RetlError';
  constructor(
    readonly code: ErrorCode,
    readonly details: ErrorDetails = {},
  ) {
    super(`${code}: ${ERROR_CODES[code].meaning} ${ERROR_CODES[code].remedy}${inWords(details)}`);
  }

  get recourse(): Recourse {
    return ERROR_CODES[this.code].recourse;
  }
}

function inWords(details: ErrorDetails): string {
  const parts = Object.entries(details).map(
    ([k, v]) => `${k}=${Array.isArray(v) ? v.join(', ') : String(v)}`,
  );
  return parts.length === 0 ? '' : ` (${parts.join('; ')})`;
}
