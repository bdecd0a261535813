/**
 * The metrics of a worker, besides those of Temporal's SDK: a total list, which docs/metrics.md is held to. Names and labels are
 * meant to stay. A label holds a mirror's name or one of few words of this project: no identity, no secret, no provider's words
 * (design.md section 3), and no more series than mirrors times these words.
 */

import type { Closing } from './run.ts';

/** Total, so that a new closing cannot be forgotten. */
const OUTCOMES: { readonly [C in Closing]: true } = {
  completed: true,
  rejected: true,
  aborted: true,
  'guard-rejected': true,
  'guard-expired': true,
  invalid: true,
  discarded: true,
  expired: true,
  imported: true,
};
export const CLOSINGS = Object.keys(OUTCOMES) as readonly Closing[];

export interface MetricSpec {
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly unit: string;
  readonly labels: readonly string[];
  readonly help: string;
}

export const METRICS = {
  // From activities, as they happen; each worker counts what it does itself.
  retl_source_rows_total: {
    kind: 'counter',
    unit: 'rows',
    labels: ['mirror'],
    help: 'Rows read from the source, those of extractions that were given up too.',
  },
  retl_members_total: {
    kind: 'counter',
    unit: 'members',
    labels: ['mirror', 'action', 'outcome'],
    help: 'Members that the destination accepted or rejected, once the journal has it.',
  },
  retl_requests_total: {
    kind: 'counter',
    unit: 'requests',
    labels: ['mirror', 'action', 'call', 'outcome', 'code'],
    help: 'Calls of the destination, by what they were answered.',
  },
  retl_request_duration_seconds: {
    kind: 'histogram',
    unit: 's',
    labels: ['mirror', 'action', 'call'],
    help: 'How long such a call took.',
  },
  retl_request_bytes_total: {
    kind: 'counter',
    unit: 'bytes',
    labels: ['mirror', 'action'],
    help: 'Bytes of the requests handed to the destination, those that went again too.',
  },
  retl_interruptions_total: {
    kind: 'counter',
    unit: 'interruptions',
    labels: ['mirror', 'step', 'kind', 'code'],
    help: 'Times that a step ended before its work was done, and why.',
  },
  retl_maintenance_removed_total: {
    kind: 'counter',
    unit: 'things',
    labels: ['what'],
    help: 'What maintenance has taken away, by kind; `putOff`: what it could not take away this time.',
  },
  // From the journal, every few seconds; each worker tells the same.
  retl_journal_up: {
    kind: 'gauge',
    unit: '',
    labels: [],
    help: '1: the journal answered the last look at it; 0: it did not, and what is told of it is older.',
  },
  retl_log_head_position: {
    kind: 'gauge',
    unit: 'position',
    labels: [],
    help: 'Position of the newest entry of the log; 0: it is empty.',
  },
  retl_log_earliest_position: {
    kind: 'gauge',
    unit: 'position',
    labels: [],
    help: 'The earliest position that the log still has.',
  },
  retl_members_held: {
    kind: 'gauge',
    unit: 'members',
    labels: ['mirror'],
    help: 'Members that the mirror’s target is known to hold.',
  },
  retl_open_run: {
    kind: 'gauge',
    unit: '',
    labels: ['mirror', 'state'],
    help: '1 for the state of the mirror’s open run, 0 for all others; all are 0 where none is open.',
  },
  retl_open_run_waits_seconds: {
    kind: 'gauge',
    unit: 's',
    labels: ['mirror'],
    help: 'Since the open run waits for what it waits for, or is parked or blocked; 0: it does not wait.',
  },
  retl_open_run_age_seconds: {
    kind: 'gauge',
    unit: 's',
    labels: ['mirror'],
    help: 'Since the open run was opened; 0: none is open.',
  },
  retl_last_completed_age_seconds: {
    kind: 'gauge',
    unit: 's',
    labels: ['mirror'],
    help: 'Since a run of the mirror last completed; since the mirror’s first run was admitted where none ever has.',
  },
  retl_last_outcome: {
    kind: 'gauge',
    unit: '',
    labels: ['mirror', 'outcome'],
    help: '1 for how the mirror’s last closed run ended, 0 for all others.',
  },
  retl_unresolved_batches: {
    kind: 'gauge',
    unit: 'batches',
    labels: ['mirror', 'state'],
    help: 'Requests of the open run whose outcome is unknown, or that are staged.',
  },
  retl_unresolved_batch_age_seconds: {
    kind: 'gauge',
    unit: 's',
    labels: ['mirror', 'state'],
    help: 'Since the oldest of them was sent, or staged; 0: there is none.',
  },
  // From each index, likewise.
  retl_index_up: {
    kind: 'gauge',
    unit: '',
    labels: ['index'],
    help: '1: the last look found the index, and that it may go on; 0: it is away or refused, and its lag is older.',
  },
  retl_index_lag_positions: {
    kind: 'gauge',
    unit: 'positions',
    labels: ['index', 'build'],
    help: 'Positions of the log that the build has not processed; 0: it has caught up, or there is no such build.',
  },
  retl_index_lag_seconds: {
    kind: 'gauge',
    unit: 's',
    labels: ['index', 'build'],
    help: 'Since the first entry that the build lacks was accepted; 0: it has caught up, or there is no such build.',
  },
} as const satisfies { readonly [name: string]: MetricSpec };

export type MetricName = keyof typeof METRICS;
export type Labels<Name extends MetricName> = {
  readonly [Label in (typeof METRICS)[Name]['labels'][number]]: string;
};

/** A code as a label: a provider's own part, after a colon, is left out. */
const WORD = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const LONGEST_WORD = 48;
const OTHER = 'other';

/** Codes at most: adapters that are not of this project have their own. */
const MOST_CODES = 100;

/** Makes labels of codes, and no more of them than there may be. */
export class CodeLabels {
  readonly #known = new Set<string>();

  /** `''` where there is no code. */
  of(code: string): string {
    const [word = ''] = code.split(':');
    if (word === '' || this.#known.has(word)) return word;
    if (!WORD.test(word) || word.length > LONGEST_WORD || this.#known.size >= MOST_CODES) return OTHER;
    this.#known.add(word);
    return word;
  }
}
