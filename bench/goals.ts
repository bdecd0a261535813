/** What `npm run bench` holds its ratios to: below a goal it exits with 1. Seconds are no goal, they are the machine's. */

interface Goal {
  /** What is measured, and to which end of it. */
  readonly what: string;
  readonly is: 'at most' | 'at least';
  readonly value: number;
}

export const GOALS = {
  first: {
    what: 'first mirror, start of the workflow to its result, × (a+b+c+d+e)',
    is: 'at most',
    value: 3,
  },
  unchanged: { what: 'unchanged run, likewise, × (a+b+c+d)', is: 'at most', value: 2.5 },
  onePercent: { what: '1 % changed, likewise, × (a+b+c+d)', is: 'at most', value: 2.8 },
  events: { what: 'history events of the first mirror', is: 'at most', value: 300 },
  memory: {
    what: 'what the worker’s peak memory grows by from a tenth of the rows, in parts of 25 % or 50 MB, whichever is more,',
    is: 'at most',
    value: 1,
  },
  replay: {
    what: 'replay into PostgreSQL to its last checkpoint, before its keys, as a rate of bare COPY',
    is: 'at least',
    value: 0.33,
  },
  engine: {
    what: 'replay into a search engine, checkpoints and all, as a rate of its bulk API',
    is: 'at least',
    value: 0.5,
  },
} as const satisfies { readonly [name: string]: Goal };

/** `ratio`s as measured; one that is no number was not met. Says each goal that was missed. */
export function missed(measured: readonly (readonly [keyof typeof GOALS, number])[]): readonly string[] {
  return measured.flatMap(([name, ratio]) => {
    const { what, is, value } = GOALS[name];
    const met = is === 'at most' ? ratio <= value : ratio >= value;
    return met ? [] : [`below its goal: ${what} is ${ratio.toFixed(2)}, and is to be ${is} ${value}`];
  });
}

/** Fails the process, once its report is written. */
export function hold(measured: Parameters<typeof missed>[0]): void {
  for (const line of missed(measured)) {
    console.error(line);
    process.exitCode = 1;
  }
}
