/** What `retl check` reports: one line per finding, value-free, printed as JSON by the worker that does the checking. */

export type CheckSubject =
  | 'configuration'
  | 'journal'
  | 'temporal'
  | 'source'
  | 'mapping'
  | 'destination'
  | 'artifacts'
  | 'index';

/** Something that is wrong. */
export interface CheckProblem {
  readonly kind: 'problem';
  /** `null`: the project as a whole. */
  readonly mirror: string | null;
  readonly subject: CheckSubject;
  /** Stable: a code of errors.ts, or an adapter's reason code. */
  readonly code: string;
  /** File and place where there is one: `mirrors/vip.yaml:5:7`, and the path in the document, such as `indexes.people`. */
  readonly place: string | null;
  readonly path: string | null;
  readonly message: string;
  readonly remedy: string;
}

/** Something that was tried and is right; `facts` are names and counts, for people. */
export interface CheckPassed {
  readonly kind: 'passed';
  readonly mirror: string | null;
  readonly subject: CheckSubject;
  readonly facts: string;
}

/** Right as far as can be seen, and yet worth a look before the first run. */
export interface CheckHint {
  readonly kind: 'hint';
  readonly mirror: string | null;
  readonly subject: CheckSubject;
  readonly message: string;
}

export type CheckLine = CheckProblem | CheckPassed | CheckHint;
