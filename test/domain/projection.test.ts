import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { compileMapping } from '../../src/domain/mapping.ts';
import {
  MAX_MEMBERS_PER_ROW,
  type MappedRow,
  type Member,
  type MirrorProjection,
} from '../../src/domain/member.ts';
import { compileProjection } from '../../src/domain/projection.ts';
import type { RawRow, SourceRow } from '../../src/domain/source-row.ts';
import { digits, failure, float, jsonb, sha256Hex, text } from './support.ts';

const columns = [digits('id'), text('email'), jsonb('tags'), float('score')];

const anyRow: MirrorProjection['rowType'] = z.record(z.string(), z.json());

function mapper(project: (row: SourceRow) => unknown, rowType = anyRow): (raw: RawRow) => MappedRow {
  // A mapping may be plain JavaScript: what it returns is anything.
  const projection: MirrorProjection = { rowType, project: (row) => project(row) as readonly Member[] };
  return compileProjection(projection, ['id'], columns, sha256Hex);
}

const good: RawRow = ['1', 'a@x', '{"b":1,"a":[1.0]}', '0.5'];

function byEmail(row: SourceRow, more: Partial<Member> = {}): Member {
  const identity = { email: row.email ?? null };
  return { identity, upsert: { ...identity, tags: row.tags ?? null }, remove: identity, ...more };
}

describe('a projection', () => {
  it('gives what a mapping by rules gives for the same members', () => {
    const rules = compileMapping(
      [
        {
          identity: { e: { column: 'email' } },
          payload: { b: { column: 'tags' }, a: { column: 'score' } },
          when: [],
        },
      ],
      ['id'],
      columns,
      sha256Hex,
    );
    const code = mapper((row) => [
      {
        identity: { e: row.email },
        upsert: { b: row.tags, e: row.email, a: row.score },
        remove: { e: row.email },
      },
    ]);
    const rows = fc.tuple(
      fc.bigInt({ min: 0n }).map(String),
      fc.string({ unit: 'grapheme', minLength: 1 }).filter((email) => !/\0|\p{Surrogate}/u.test(email)),
      fc.option(fc.json()),
      fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map(String)),
    );
    fc.assert(
      fc.property(rows, (raw) => {
        expect(settled(() => code(raw))).toEqual(settled(() => rules(raw)));
      }),
    );
  });

  it('sees parsed JSON, exact digits as strings and NULL as null; columns may have any name', () => {
    const seen: SourceRow[] = [];
    const odd = [...columns, text('__proto__'), text('toString')];
    const project = (row: SourceRow) => {
      seen.push(row);
      return [];
    };
    compileProjection(
      { rowType: anyRow, project },
      ['id'],
      odd,
      sha256Hex,
    )(['9007199254740993', null, '[{"x":1}]', '-0', 'p', 't']);
    expect(Object.entries(seen[0] ?? {})).toEqual([
      ['id', '9007199254740993'],
      ['email', null],
      ['tags', [{ x: 1 }]],
      ['score', 0],
      ['__proto__', 'p'],
      ['toString', 't'],
    ]);
  });

  it('stores a removal only where it is not the identity itself', () => {
    const [same] = mapper((row) => [byEmail(row)])(good).members;
    expect(same).toEqual({
      identity: '{"email":"a@x"}',
      upsert: '{"email":"a@x","tags":{"a":[1],"b":1}}',
      remove: null,
    });
    const [other] = mapper((row) => [byEmail(row, { remove: { email: row.email ?? null, list: 4 } })])(
      good,
    ).members;
    expect(other?.remove).toBe('{"email":"a@x","list":4}');
  });

  it('rule 7: an empty list excludes the row, whose key is checked all the same', () => {
    const none = mapper(() => []);
    expect(none(good)).toEqual({ sourceKey: '["1"]', members: [] });
    expect(failure(() => none([null, 'a@x', null, null])).code).toBe('data.null-key');
    expect(failure(() => none(['1', 'a@x'])).details).toMatchObject({ rule: 'row-length' });
  });

  it('collapses identical members of a row and refuses conflicting ones', () => {
    expect(mapper((row) => [byEmail(row), byEmail(row)])(good).members).toHaveLength(1);
    for (const more of [{ upsert: { x: 1 } }, { remove: { x: 1 } }]) {
      expect(failure(() => mapper((row) => [byEmail(row), byEmail(row, more)])(good)).code).toBe(
        'data.conflicting-payloads',
      );
    }
  });
});

/** The result or the code of the failure. */
function settled(run: () => MappedRow): unknown {
  try {
    return run();
  } catch {
    return failure(run).code;
  }
}

describe('what a projection may not do', () => {
  const keyHash = `sha256:${sha256Hex('["1"]')}`;

  it('rule 7: an error fails the row without its words', () => {
    const failed = failure(() => mapper((row) => expect.fail(`secret ${row.email}`))(good));
    expect(failed).toMatchObject({ code: 'data.invalid-row', details: { rule: 'mapping-threw', keyHash } });
    expect(failed.message).not.toMatch(/secret|a@x/);
  });

  it('answer with anything but a list of members, within the bound', () => {
    const wrong: [string, (row: SourceRow) => unknown][] = [
      ['not-a-list', () => undefined],
      ['not-a-list', () => null],
      ['not-a-list', (row) => byEmail(row)],
      ['not-a-list', () => 'text'],
      ['async-result', async (row) => [byEmail(row)]],
      ['async-result', () => Promise.reject(new Error('later'))],
      ['too-many-members', (row) => Array.from({ length: MAX_MEMBERS_PER_ROW + 1 }, () => byEmail(row))],
      ['not-a-member', () => [null]],
      ['not-a-member', () => [[]]],
      ['not-a-member', () => new Array(1)],
      ['not-an-object', (row) => [{ identity: byEmail(row).identity, upsert: {} }]],
      ['not-an-object', (row) => [byEmail(row), { ...byEmail(row), upsert: [] }]],
      ['no-identity', (row) => [byEmail(row, { identity: {} })]],
      [
        'mapping-threw',
        (row) => [Object.defineProperty(byEmail(row), 'upsert', { get: () => expect.fail('secret') })],
      ],
    ];
    for (const [rule, project] of wrong) {
      expect(failure(() => mapper(project)(good))).toMatchObject({
        code: 'data.invalid-row',
        details: { rule, keyHash },
      });
    }
    const most = mapper(() =>
      Array.from({ length: MAX_MEMBERS_PER_ROW }, (_, n) => ({ identity: { n }, upsert: {}, remove: {} })),
    );
    expect(most(good).members).toHaveLength(MAX_MEMBERS_PER_ROW);
  });

  it('nan/infinity, nul+surrogates: put what JSON cannot hold into a member', () => {
    const cases: [unknown, string][] = [
      [Number.NaN, 'not-finite'],
      ['a\0', 'nul-character'],
      ['\ud83d', 'lone-surrogate'],
      [new Date(0), 'malformed'],
      [1n, 'malformed'],
      [undefined, 'malformed'],
    ];
    for (const [value, rule] of cases) {
      expect(failure(() => mapper((row) => [{ ...byEmail(row), upsert: { value } }])(good))).toMatchObject({
        code: 'data.invalid-value',
        details: { rule, part: 'upsert', keyHash },
      });
    }
  });

  it('null-key: leave a part of the identity null or empty, at any depth', () => {
    for (const email of [null, '', { deep: [null] }, { deep: '' }]) {
      const failed = failure(() => mapper((row) => [byEmail(row, { identity: { email, ok: false } })])(good));
      expect(failed).toMatchObject({ code: 'data.null-key', details: { field: 'email', keyHash } });
    }
    for (const id of [0, false])
      expect(mapper((row) => [byEmail(row, { identity: { id } })])(good).members).toHaveLength(1);
  });

  it('depend on a clock, a counter or randomness: found on the first rows', () => {
    let calls = 0;
    const counting = mapper((row) => [byEmail(row, { upsert: { calls: ++calls } })]);
    expect(failure(() => counting(good)).details).toMatchObject({ rule: 'not-deterministic', keyHash });
    let late = 0;
    const excludesFirst = mapper((row) =>
      row.id === '1' ? [] : [byEmail(row, { upsert: { late: ++late } })],
    );
    expect(excludesFirst(good).members).toEqual([]);
    expect(failure(() => excludesFirst(['2', 'a@x', null, null])).details).toMatchObject({
      rule: 'not-deterministic',
    });
  });

  it('change the row', () => {
    for (const change of [
      (row: SourceRow) => void Object.assign(row, { email: 'b@x' }),
      (row: SourceRow) => void Object.assign(row.tags ?? {}, { b: 2 }),
    ]) {
      const changing = mapper((row) => {
        change(row);
        return [byEmail(row)];
      });
      expect(failure(() => changing(good)).details).toMatchObject({ rule: 'mapping-threw' });
    }
  });
});

describe('the row schema', () => {
  const project = (row: SourceRow) => [byEmail(row)];
  const shape = {
    id: z.string(),
    email: z.string(),
    tags: z.json().nullable(),
    score: z.number().nullable(),
  };

  it('lets a valid row through as it is, whatever it leaves out', () => {
    for (const schema of [
      z.strictObject(shape),
      z.object({ id: z.string() }),
      z.object({}).catchall(z.json()),
    ]) {
      expect(mapper(project, schema)(good)).toEqual(mapper(project)(good));
    }
    const nested = z.object({ tags: z.object({ a: z.array(z.number()) }) });
    expect(mapper(project, nested)(good)).toEqual(mapper(project)(good));
  });

  it('rule 7: a row that it refuses fails, naming the columns and no value', () => {
    const schema = z.object({ email: z.email(), tags: z.object({ b: z.string() }), score: z.number() });
    const failed = failure(() => mapper(project, schema)(['1', 'secret', '{"b":1}', '0.5']));
    expect(failed).toMatchObject({
      code: 'data.invalid-row',
      details: { rule: 'row-schema', columns: ['email', 'tags'] },
    });
    expect(failed.message).not.toContain('secret');
    const silent = mapper(project, { safeParse: () => ({ success: false }) });
    expect(failure(() => silent(good)).details).toMatchObject({ rule: 'row-schema' });
    const throwing = mapper(project, { safeParse: () => expect.fail('secret') });
    expect(failure(() => throwing(good)).details).toMatchObject({ rule: 'row-schema-threw' });
  });

  it('may not alter the row, at any depth', () => {
    const altering: MirrorProjection['rowType'][] = [
      z.object({ email: z.string().toUpperCase() }),
      z.object({ more: z.string().default('x') }),
      z.object({ tags: z.object({ b: z.number().transform((n) => n + 1) }) }),
      z.object({ tags: z.object({ a: z.array(z.number()).transform((list) => [...list, 2]) }) }),
      z.object({ tags: z.object({ a: z.array(z.number()).transform(() => []) }) }),
      z.object({ score: z.coerce.string() }),
    ];
    for (const schema of altering) {
      expect(failure(() => mapper(project, schema)(good)).details).toMatchObject({
        rule: 'schema-alters-row',
      });
    }
  });
});
