/** Adds up how long each kind of statement took, as the worker saw it: `BENCH_SQL=1 npm run bench`. */

import pg from 'pg';

interface Spent {
  calls: number;
  ms: number;
}

export function timeStatements(): void {
  const spent = new Map<string, Spent>();
  const original = pg.Client.prototype.query;
  const timed = function (this: pg.Client, ...args: unknown[]): unknown {
    const [text] = args;
    const done = args.at(-1);
    if (typeof text !== 'string') return Reflect.apply(original, this, args);
    const start = performance.now();
    const note = () => {
      const key = text.replaceAll(/\s+/g, ' ').replaceAll(/_\d+/g, '_N').trim().slice(0, 70);
      const entry = spent.get(key) ?? { calls: 0, ms: 0 };
      entry.calls += 1;
      entry.ms += performance.now() - start;
      spent.set(key, entry);
    };
    if (typeof done === 'function') {
      // The pool's own way: with a callback.
      const noted = (...given: unknown[]) => {
        note();
        return Reflect.apply(done, undefined, given);
      };
      return Reflect.apply(original, this, [...args.slice(0, -1), noted]);
    }
    const result: unknown = Reflect.apply(original, this, args);
    return result instanceof Promise ? result.finally(note) : result;
  };
  Reflect.set(pg.Client.prototype, 'query', timed);
  process.on('exit', () => {
    const rows = [...spent].sort((x, y) => y[1].ms - x[1].ms).slice(0, 15);
    for (const [key, { calls, ms }] of rows) {
      process.stderr.write(`${(ms / 1000).toFixed(2).padStart(8)} s ${String(calls).padStart(6)} × ${key}\n`);
    }
  });
}
