/**
 * Hundreds of thousands of members in an API that loses answers, is busy and goes down at random, compared member by
 * member after each of several changes: nobody is missing, nobody is left over, and every version is the source's.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MirrorResult } from '../../src/domain/messages.ts';
import { json, type Manners, polite, RudeApi } from '../support/rude-api.ts';
import { System } from '../support/system.ts';
import { PER_ROW } from '../support/system-destinations.ts';
import { Scene, tableOf } from '../support/system-scene.ts';
import { messyText, SCRAPS_FROM } from './messy.ts';

const ROWS = Number(process.env.SCALE_ROWS ?? 300_000);

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

class ApiScene extends Scene {
  async configure(url: string): Promise<void> {
    await this.system.connect('moody', { type: 'http', base_url: url, timeout_ms: 2_000 });
    await this.write(
      {
        connection: 'moody',
        upsert: { method: 'POST', path: '/members' },
        remove: { method: 'DELETE', path: '/members' },
        verify_empty: { path: '/members', count: '/count' },
        outcomes: PER_ROW,
        idempotent: true,
      },
      {
        query: 'select id, plan, n, extra from $table',
        mirror: {
          members: { identity: { id: 'id' }, payload: { plan: 'plan', n: 'n', constructor: 'extra' } },
          batch: { rows: 1000, in_flight: 6 },
        },
      },
    );
  }

  insert(from: number, to: number, salt: number): Promise<void> {
    return this.exec(`insert into $table select ${messyText('n', salt)} || '#' || n, ${messyText('n', salt + 1)},
      n * 1234567890.0123456789, case when n % 3 = 0 then null else jsonb_build_object('__proto__', n, 't', ${messyText('n', salt + 2)}) end
      from generate_series(${from}, ${to}) n, ${SCRAPS_FROM}`);
  }

  /** Compares each member with its row, without holding both sides in one assertion. */
  async differences(members: ReadonlyMap<string, unknown>): Promise<number> {
    const { rows } = await this.system.source.query<{ id: string; json: string }>(
      `select id, json_build_object('constructor', extra, 'id', id, 'n', n::text, 'plan', plan)::text as json from ${this.table}`,
    );
    let wrong = Math.abs(rows.length - members.size);
    for (const row of rows) if (sorted(members.get(row.id)) !== sorted(JSON.parse(row.json))) wrong += 1;
    return wrong;
  }
}

/** Text in which the order of names does not count. */
function sorted(value: unknown): string {
  return (
    JSON.stringify(value, (_, v: unknown) =>
      typeof v === 'object' && v !== null && !Array.isArray(v)
        ? Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1))
        : v,
    ) ?? 'nothing'
  );
}

/** Mostly polite; each trouble at a fixed place in the row of requests, so that every run of this test meets all of them. */
function moody(lost: { rows: number }): Manners {
  let seen = 0;
  return (request) => {
    seen += 1;
    if (seen % 41 === 0) return void request.socket.write(json('{}', '429 Busy', ['retry-after: 1']));
    if (seen % 53 === 0) {
      lost.rows += JSON.parse(request.apply()).results.length;
      return void request.socket.destroy();
    }
    if (seen % 67 === 0) return void request.socket.write(json('{}', '502 Bad Gateway'));
    return polite(request);
  };
}

test('exactly the query, whatever the API does on the way', async () => {
  const api = await RudeApi.start();
  system.defer(() => api.down());
  const scene = new ApiScene(system, 'moody', tableOf('moody'));
  await scene.exec('create table $table (id text primary key, plan text, n numeric, extra jsonb)');
  await scene.insert(1, ROWS, 1);
  await scene.configure(api.url);
  const lost = { rows: 0 };
  api.always = moody(lost);
  const done = await scene.completed();
  let accepted = accepteds(done);
  expect(await scene.differences(api.members)).toBe(0);
  for (let round = 1; round <= 5; round++) {
    await scene.exec(`update $table set plan = plan || ${round} where hashtext(id) % 100 = ${round};
      update $table set id = id || 'é' where hashtext(id) % 200 = ${10 + round};
      delete from $table where hashtext(id) % 150 = ${20 + round}`);
    await scene.insert(ROWS * (round + 1), ROWS * (round + 1) + ROWS / 200, round);
    const more = accepteds(await scene.completed());
    expect(more).toBeGreaterThan(0);
    accepted += more;
    expect(await scene.differences(api.members)).toBe(0);
  }
  // What was done twice is what the API did without saying so, and nothing else.
  const effects = [...api.effects.values()].reduce((sum, times) => sum + times, 0);
  expect(effects).toBe(accepted + lost.rows);
});

function accepteds({ counts }: MirrorResult): number {
  return counts.added + counts.changed + counts.removed;
}
