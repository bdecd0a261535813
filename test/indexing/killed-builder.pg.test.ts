/** The short form of test/crash/index-kills.crash.test.ts: a real builder dies by SIGKILL, and another one goes on. */

import { afterAll, beforeAll, test } from 'vitest';
import { KILLS, KilledBuilders } from '../support/index-kills.ts';

const SHORT = ['after the artifact', 'committed, not registered', 'promoted, the old one still there'];
const kills = KILLS.filter(({ at }) => SHORT.includes(at)).map((kill, n) => ({
  ...kill,
  index: `kill-${n}`,
}));

let builders: KilledBuilders;
beforeAll(async () => {
  builders = await KilledBuilders.open(kills.map(({ index }) => index));
});
afterAll(() => builders.close());

test.each(kills)(
  '$at: a builder killed there leaves what another one brings to the log’s rows',
  async (kill) => {
    await builders.kill(kill.index, kill);
  },
);
