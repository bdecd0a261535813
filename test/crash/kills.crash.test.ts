/** Workers killed again and again at moments that nobody chose, over whole runs with additions, changes and removals. */

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { System } from '../support/system.ts';
import { HttpScene, TableScene } from '../support/system-destinations.ts';
import { completedBy } from '../support/system-scene.ts';

const ROWS = 600;
const KILLS = 4;

let system: System;
beforeAll(async () => {
  system = await System.start();
});
afterAll(() => system.stop());

/** Kills a worker every few hundred milliseconds of its life, then lets one live. */
async function killAgainAndAgain(ended: () => boolean): Promise<void> {
  for (let kill = 1; kill <= KILLS && !ended(); kill += 1) {
    const worker = await system.startWorker();
    // A dead worker's tasks are given out again after ten seconds: less than that, and nothing would be under way.
    await sleep(kill === 1 ? 700 : 11_000 + kill * 137);
    await worker.kill();
  }
  await system.startWorker();
}

async function throughKills<T>(work: Promise<T>): Promise<T> {
  let ended = false;
  const done = work.finally(() => {
    ended = true;
  });
  done.catch(() => undefined);
  await killAgainAndAgain(() => ended);
  return done;
}

test('an idempotent API and a table end exact after every run', async () => {
  const http = await HttpScene.create(system, 'killed-http', { rows: ROWS, idempotent: true });
  http.audience.always({ kind: 'delay', ms: 250 });
  const table = await TableScene.create(system, 'killed-table', { rows: ROWS });
  // A row of the target that counts how often each member was written.
  await table.target.query(`alter table audience add written int not null default 0;
    create function counted() returns trigger language plpgsql as $$
      begin perform pg_sleep(0.02); new.written := coalesce(old.written, 0) + 1; return new; end $$;
    create trigger counted before update on audience for each row execute function counted()`);
  const mirrors = [http, table];
  const first = await Promise.all(mirrors.map((scene) => scene.start()));
  await throughKills(Promise.all(first.map(completedBy)));
  expect(http.audience.state.members).toEqual(await http.wanted());
  expect(await table.targetRows()).toEqual(await table.sourceRows());

  for (const scene of mirrors) {
    await scene.exec(`delete from $table where id > 'm500'; update $table set plan = 'gold' where id < 'm200';
      insert into $table select 'n' || n, 'new' from generate_series(1, 200) n`);
  }
  const second = await Promise.all(mirrors.map((scene) => scene.start()));
  const results = await throughKills(Promise.all(second.map(completedBy)));
  expect(http.audience.state.members).toEqual(await http.wanted());
  expect(await table.targetRows()).toEqual(await table.sourceRows());
  for (const { counts } of results) {
    expect(counts).toMatchObject({ added: 200, changed: 199, removed: 100, unchanged: 301 });
  }
  // The fake applies each key once: what took effect is what was due, and nothing more.
  expect(http.audience.state.effects).toHaveLength(ROWS + 200 + 199 + 100);
});
