/** What stands in the table of error codes (errors.ts) for each of them. */

/** What a caller may do about an error. `retry`: transient; `fix`: configuration or data must change first. */
export type Recourse = 'retry' | 'fix';

export interface CodeInfo {
  readonly meaning: string;
  readonly remedy: string;
  readonly recourse: Recourse;
}
