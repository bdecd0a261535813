/** APIs with bad manners: whatever they answer, nothing is lost, nothing is done twice unasked, and nobody is pestered. */

import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { json, type Manners, polite, RudeApi } from '../support/rude-api.ts';
import { System } from '../support/system.ts';
import { PER_ROW } from '../support/system-destinations.ts';
import { completedBy, ending, Scene, type SceneOptions, tableOf } from '../support/system-scene.ts';

let system: System;
beforeAll(async () => {
  system = await System.start();
  await system.startWorker();
});
afterAll(() => system.stop());

interface RudeOptions extends SceneOptions {
  readonly connection?: object;
}

class RudeScene extends Scene {
  constructor(
    of: System,
    mirror: string,
    table: string,
    readonly api: RudeApi,
  ) {
    super(of, mirror, table);
  }

  static async create(name: string, options: RudeOptions = {}): Promise<RudeScene> {
    const api = await RudeApi.start();
    system.defer(() => api.down());
    const scene = new RudeScene(system, name, tableOf(name), api);
    await scene.createSource(options.rows ?? 5);
    await system.connect(`${name}-api`, {
      type: 'http',
      base_url: api.url,
      timeout_ms: 1_500,
      ...options.connection,
    });
    const destination = {
      connection: `${name}-api`,
      upsert: { method: 'POST', path: '/members' },
      remove: { method: 'DELETE', path: '/members' },
      verify_empty: { path: '/members', count: '/count' },
      outcomes: PER_ROW,
    };
    await scene.write(destination, options);
    return scene;
  }

  /** The API holds exactly what the query returns, and nothing was done to it twice. */
  async expectExact(): Promise<void> {
    expect(this.api.members).toEqual(await this.wanted());
    expect([...this.api.effects.values()].every((times) => times === 1)).toBe(true);
  }
}

const slug = (name: string) =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/-$/, '');

const raw =
  (text: (body: string) => string | Buffer, end = false): Manners =>
  (request) => {
    request.socket.write(text(request.apply()));
    if (end) request.socket.end();
  };

const withBody = (headers: readonly string[], bytes: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from(
      ['HTTP/1.1 200 OK', `content-length: ${bytes.length}`, ...headers].join('\r\n').concat('\r\n\r\n'),
    ),
    bytes,
  ]);

const chunked = (body: string, trailers = '') =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n${trailers}\r\n`;

describe.concurrent('strange, and an acceptance all the same', () => {
  const cases: readonly (readonly [string, Manners])[] = [
    ['gzip that nobody asked for', raw((b) => withBody(['content-encoding: gzip'], gzipSync(b)))],
    ['brotli that nobody asked for', raw((b) => withBody(['content-encoding: br'], brotliCompressSync(b)))],
    ['a byte order mark', raw((b) => json(`\ufeff${b}`))],
    [
      'UTF-16, and says so',
      raw((b) =>
        withBody(['content-type: application/json; charset=utf-16le'], Buffer.from(`\ufeff${b}`, 'utf16le')),
      ),
    ],
    [
      '100 and 103 before the answer',
      raw((b) => `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${json(b)}`),
    ],
    ['chunks and trailers', raw((b) => chunked(b, 'x-checksum: 1\r\nx-status: 500\r\n'))],
    ['HTTP/1.0, the end of the connection its end', raw((b) => `HTTP/1.0 200 OK\r\n\r\n${b}`, true)],
    [
      'headers twice',
      raw((b) =>
        json(b, '200 OK', [
          'x-request-id: a',
          'x-request-id: b',
          'set-cookie: a',
          'set-cookie: b',
          'retry-after: 1',
          'retry-after: 2',
        ]),
      ),
    ],
    ['a reason phrase in Latin-1, and none', raw((b) => Buffer.from(json(b, '200 Très bien'), 'latin1'))],
    [
      'a long silence before it',
      async (r) => {
        const body = r.apply();
        await sleep(1_000);
        r.socket.write(json(body));
      },
    ],
    ['white space all around', raw((b) => json(`\r\n\t ${b} \n`))],
    [
      'the answer in two halves',
      async (r) => {
        const text = json(r.apply());
        r.socket.write(text.slice(0, 40));
        await sleep(300);
        r.socket.write(text.slice(40));
      },
    ],
  ];
  test.for(cases)('%s', async ([name, manners]) => {
    const scene = await RudeScene.create(`ok-${slug(name)}`);
    scene.api.always = manners;
    expect((await scene.completed()).counts).toMatchObject({ added: 5 });
    expect(scene.api.writes).toHaveLength(1);
    await scene.expectExact();
  });
});

describe.concurrent('no acceptance: blocked, after one request, until somebody decides', () => {
  const list = (results: string) => json(`{"results":${results}}`);
  const cases: readonly (readonly [string, string, Manners])[] = [
    [
      'an empty body after a long silence',
      'reply-lacks-ids',
      async (r) => {
        r.apply();
        await sleep(1_000);
        r.socket.write(json(''));
      },
    ],
    ['204 where rows were asked for', 'http-204', raw(() => 'HTTP/1.1 204 No Content\r\n\r\n')],
    ['chunks that stall', 'request-timeout', raw((b) => chunked(b).slice(0, -5))],
    ['two documents', 'reply-malformed', raw((b) => json(b + b))],
    [
      'plain bytes called gzip',
      'reply-undecodable',
      raw((b) => withBody(['content-encoding: gzip'], Buffer.from(b))),
    ],
    [
      'an encoding that nobody knows',
      'reply-undecodable',
      raw((b) => withBody(['content-encoding: zstd'], Buffer.from(b))),
    ],
    [
      'UTF-16 that says nothing',
      'reply-undecodable',
      raw((b) => withBody(['content-type: application/json'], Buffer.from(`\ufeff${b}`, 'utf16le'))),
    ],
    [
      '101 Switching Protocols',
      'connection-lost',
      raw(() => 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    ],
    ['two lengths', 'reply-malformed', raw((b) => json(b, '200 OK', ['content-length: 3']))],
    ['headers without end', 'reply-malformed', raw(() => `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(200_000)}`)],
    ['503 with Retry-After', 'http-503', raw(() => json('{}', '503 Busy', ['retry-after: 0']))],
    ['silence', 'request-timeout', (r) => void r.apply()],
    ['nothing, and the door', 'connection-reset', raw(() => '', true)],
    ['ids in another case', 'reply-lacks-ids', raw((b) => json(b.replaceAll('"m0', '"M0')))],
    [
      'a list in a list',
      'reply-malformed-id',
      raw((b) => list(`[${JSON.stringify(JSON.parse(b).results)}]`)),
    ],
    ['null for a list', 'reply-lacks-ids', raw(() => list('null'))],
    ['an object for a list', 'reply-lacks-ids', raw(() => list('{"m001":{"status":"ok"}}'))],
    ['a million nulls', 'reply-malformed-id', raw(() => list(`[${Array(1_000_000).fill('null').join()}]`))],
    [
      'a hundred thousand strangers',
      'reply-adds-ids',
      raw((b) =>
        json(
          b.replace(
            /\]\}$/,
            `${Array.from({ length: 100_000 }, (_, n) => `,{"id":"x${n}","status":"ok"}`).join('')}]}`,
          ),
        ),
      ),
    ],
    ['deep brackets', 'reply-malformed', raw(() => list('['.repeat(1_000_000)))],
    ['a status beyond all numbers', 'reply-malformed', raw(() => 'HTTP/1.1 99999 OK\r\n\r\n')],
    [
      'an interim answer for ever',
      'request-timeout',
      async (r) => {
        r.apply();
        for (let n = 0; n < 30; n++) {
          r.socket.write('HTTP/1.1 102 Processing\r\n\r\n');
          await sleep(100);
        }
      },
    ],
  ];
  test.for(cases)('%s (%s)', async ([name, code, manners]) => {
    const scene = await RudeScene.create(`no-${slug(name)}`);
    scene.api.always = manners;
    const handle = await scene.start();
    expect((await scene.untilWaiting(handle, 'blocked')).waiting).toMatchObject({ code });
    expect(scene.api.writes).toHaveLength(1);
    await scene.signal('cancel');
    expect(await ending(handle)).toMatchObject({ kind: 'result', result: { outcome: 'cancelled' } });
  });
});

describe.concurrent('an API that says later', () => {
  test.for(['-5', 'soon', '1e9', 'Thu, 01 Jan 1970 00:00:00 GMT', '0', '99999999999999999999999x', ''])(
    '429: Retry-After %s makes neither a hot loop nor an endless wait',
    async (value) => {
      const scene = await RudeScene.create(`later-${slug(value) || 'nothing'}`);
      const unapplied: Manners = (r) =>
        void r.socket.write(json('{}', '429 Busy', [`retry-after: ${value}`]));
      scene.api.next.push(unapplied, unapplied);
      await scene.completed();
      const [a, b, c, ...more] = scene.api.writes.map(({ at }) => at);
      expect(more).toEqual([]);
      expect((b ?? 0) - (a ?? 0)).toBeGreaterThan(900);
      expect((c ?? 0) - (b ?? 0)).toBeGreaterThan(1_900);
      await scene.expectExact();
    },
  );

  test('429: a wait of thirty years is asked about again after a day', async () => {
    const scene = await RudeScene.create('thirty-years');
    scene.api.always = (r) => void r.socket.write(json('{}', '429 Busy', ['retry-after: 999999999999']));
    const handle = await scene.start();
    const { waiting } = await scene.untilWaiting(handle, 'retry');
    expect((waiting?.untilMs ?? 0) - Date.now()).toBeLessThan(86_400_001);
    await scene.signal('cancel');
    await ending(handle);
    expect(scene.api.writes).toHaveLength(1);
  });

  test('503 that is declared to mean nothing applied is waited out', async () => {
    const scene = await RudeScene.create('declared-503', {
      destination: { nothing_applied: [413, 429, 503] },
    });
    scene.api.next.push((r) => void r.socket.write(json('{}', '503 Busy', ['retry-after: 2'])));
    await scene.completed();
    expect(scene.api.writes).toHaveLength(2);
    await scene.expectExact();
  });

  test('rule 3: it changes its mind: too large, then busy, then a page, then a row of the second copy refused', async () => {
    const scene = await RudeScene.create('fickle', { destination: { idempotent: true } });
    scene.api.next.push(
      (r) => void r.socket.write(json('{}', '413 Too Large')),
      (r) => void r.socket.write(json('{}', '429 Busy')),
      (r) => void r.socket.write(withBody(['content-type: text/html'], Buffer.from('<h1>hi</h1>'))),
      (r) => void r.socket.write(json(r.apply().replace('"ok"', '"invalid"'))),
    );
    const handle = await scene.start();
    // The first copy may have put that row in: nobody is called rejected, and nothing goes again by itself.
    const { waiting } = await scene.untilWaiting(handle, 'blocked');
    expect(waiting).toMatchObject({ code: 'row-rejected', batch: expect.stringMatching(/^sha256:/) });
    const seen = scene.api.writes.length;
    await sleep(1_500);
    expect(scene.api.writes).toHaveLength(seen);
    const unresolved = (await scene.batches()).filter((batch) => batch.state === 'unknown');
    expect(unresolved).toMatchObject([{ resends: 1, reason: 'row-rejected' }]);
    // Asked again it has come round.
    await scene.signal('resume');
    await completedBy(handle);
    expect(scene.api.members).toEqual(await scene.wanted());
    expect(scene.api.writes.length).toBeLessThan(10);
  });
});

describe.concurrent('an API that is down', () => {
  test('at removal time only: the removals wait, and are done once', async () => {
    const scene = await RudeScene.create('down-for-removals');
    await scene.completed();
    await scene.exec(`delete from $table where id = 'm001'; insert into $table values ('new', 'x')`);
    scene.api.next.push(async (r) => {
      r.socket.end(json(r.apply(), '200 OK', ['connection: close']));
      await scene.api.down();
    });
    const handle = await scene.start();
    await scene.untilWaiting(handle, 'retry');
    await sleep(1_500);
    await scene.api.listen();
    await completedBy(handle);
    await scene.expectExact();
    expect(scene.api.writes).toHaveLength(3);
  });

  test('when a run begins: it says what it waits for, and goes on when the API is up', async () => {
    const scene = await RudeScene.create('down-at-first');
    await scene.api.down();
    const handle = await scene.start();
    const { waiting } = await scene.untilWaiting(handle, 'retry');
    expect(waiting).toMatchObject({ code: 'connection-refused' });
    await scene.api.listen();
    await completedBy(handle);
    await scene.expectExact();
  });

  test('a read of its size that cannot be understood ends the run at once, for waiting would not mend it', async () => {
    const scene = await RudeScene.create('odd-count', {
      destination: { verify_empty: { path: '/members', count: '/size' } },
    });
    expect(await scene.run()).toMatchObject({
      kind: 'failed',
      type: 'invalid',
      message: expect.stringContaining('reply-not-understood'),
    });
    expect(scene.api.writes).toEqual([]);
  });

  test('at the finish: the finish is sent once it is back, and once only', async () => {
    const scene = await RudeScene.create('down-for-finish', {
      destination: { finish: { method: 'POST', path: '/finish' } },
    });
    scene.api.next.push(
      async (r) => {
        r.socket.end(json(r.apply(), '200 OK', ['connection: close']));
        await scene.api.down();
      },
      (r) => void r.socket.write(json('{"ok":true}')),
    );
    const handle = await scene.start();
    await scene.untilWaiting(handle, 'retry');
    await scene.api.listen();
    await completedBy(handle);
    expect(scene.api.writes.map(({ path }) => path)).toEqual(['/members', '/finish']);
    await scene.expectExact();
  });

  test('rule 10: a finish whose second copy is refused is neither refused nor sent again by itself', async () => {
    const scene = await RudeScene.create('finish-refused-late', {
      destination: { idempotent: true, finish: { method: 'POST', path: '/finish', idempotent: true } },
    });
    scene.api.next.push(
      (r) => void r.socket.write(json(r.apply())),
      (r) => void r.socket.destroy(),
      (r) => void r.socket.write(json('{}', '400 Bad')),
      (r) => void r.socket.write(json('{"ok":true}')),
    );
    const handle = await scene.start();
    const { waiting } = await scene.untilWaiting(handle, 'blocked');
    expect(waiting).toMatchObject({ code: 'http-400' });
    expect(await scene.batches('finish')).toMatchObject([{ state: 'unknown', resends: 1 }]);
    expect(scene.api.writes).toHaveLength(3);
    await scene.signal('resume');
    await completedBy(handle);
    expect(scene.api.writes).toHaveLength(4);
    await scene.expectExact();
  });

  test('it takes connections and closes them at once: nobody pesters it', async () => {
    const scene = await RudeScene.create('slamming', { destination: { idempotent: true } });
    await scene.completed();
    await scene.exec(`insert into $table values ('new', 'x')`);
    let slammed = 0;
    scene.api.always = (r) => {
      slammed += 1;
      r.socket.destroy();
    };
    const handle = await scene.start();
    await sleep(8_000);
    expect(slammed).toBeGreaterThan(1);
    expect(slammed).toBeLessThan(6);
    scene.api.always = polite;
    await completedBy(handle);
    await scene.expectExact();
  });
});
