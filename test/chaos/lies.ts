/** The ways in which an API lies, and how its answers are mangled. */

import type { ServerResponse } from 'node:http';
import type { Dice } from './dice.ts';

/**
 * What may happen to a write. `-before`: nothing was applied; `-after`: all of it was; `half`: a part; `late`: applied when nobody
 * waits for the answer any more; `told-…`: nothing was applied, and the answer proves it.
 */
export const WRITE_LIES = {
  'lost-before': 4,
  'lost-after': 5,
  'error-before': 3,
  'error-after': 3,
  'conflict-after': 1,
  'conflict-before': 1,
  'silent-before': 1,
  'silent-after': 1,
  late: 1,
  half: 2,
  'told-busy': 5,
  'told-large': 1,
  'told-unauthorized': 0.4,
  'told-refused': 0.6,
  truncated: 3,
  garbage: 2,
  html: 1,
  empty: 1,
  missing: 2,
  repeated: 2,
  foreign: 2,
  slow: 4,
} as const;
export type WriteLie = keyof typeof WRITE_LIES;

/** What may happen to a question; none of them says something that is not so. */
export const READ_LIES = { lost: 3, error: 4, unauthorized: 1, html: 2, truncated: 2, silent: 1, slow: 3 };

/** How a job goes on. `mute`, `missing`, `foreign` and `repeated` tell wrongly of a done job, for a while. */
export const JOB_FATES = {
  fine: 12,
  stuck: 1,
  'failed-none': 1,
  'failed-all': 1,
  'gone-none': 1,
  'gone-done': 1,
  mute: 2,
  missing: 2,
  foreign: 2,
  repeated: 2,
} as const;
export type JobFate = keyof typeof JOB_FATES;

export interface Reply {
  readonly status: number;
  readonly body: string;
}

export interface RowResult {
  readonly id: string;
  readonly status: 'ok' | 'invalid';
}

const HTML = '<html><body>We will be back soon</body></html>';

export function json(status: number, value: unknown): Reply {
  return { status, body: JSON.stringify(value) };
}

export function send(outgoing: ServerResponse, { status, body }: Reply): void {
  if (outgoing.destroyed) return;
  outgoing
    .writeHead(status, { 'content-type': body.startsWith('<') ? 'text/html' : 'application/json' })
    .end(body);
}

export function cutOff(outgoing: ServerResponse, { body }: Reply): void {
  outgoing.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  outgoing.write(body.slice(0, Math.floor(body.length / 2)), () => outgoing.socket?.end());
}

/** The right answer, made wrong. */
export function mangled(lie: string, results: readonly RowResult[], dice: Dice): Reply {
  const [first] = results;
  const stranger: RowResult = { id: 'nobody', status: 'ok' };
  switch (lie) {
    case 'garbage':
      return { status: 200, body: '{"results": [' };
    case 'html':
      return { status: 200, body: HTML };
    case 'empty':
      return { status: 200, body: '' };
    case 'mute':
      return json(200, { state: 'finished' });
    case 'missing':
      return json(200, { results: results.slice(1) });
    case 'repeated':
      return json(200, { results: first === undefined ? [stranger] : [...results, first] });
    case 'foreign':
      return json(200, { results: [...results, stranger] });
    default:
      return dice.chance(0.5) ? json(500, { error: 'internal' }) : { status: 502, body: HTML };
  }
}

/** Answers a question badly. @returns whether it is answered */
export async function lieToReader(lie: string, outgoing: ServerResponse, right: Reply): Promise<boolean> {
  switch (lie) {
    case 'lost':
      outgoing.socket?.resetAndDestroy();
      return true;
    case 'silent':
      return true;
    case 'error':
      send(outgoing, json(503, { error: 'try again' }));
      return true;
    case 'unauthorized':
      send(outgoing, json(401, { error: 'who are you' }));
      return true;
    case 'html':
      send(outgoing, { status: 200, body: HTML });
      return true;
    case 'truncated':
      cutOff(outgoing, right);
      return true;
    default:
      await new Promise((wake) => setTimeout(wake, 400));
      return false;
  }
}
