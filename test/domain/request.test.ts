import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../src/domain/canonical-json.ts';
import { revisionId, runId, sha256FromHex, targetId } from '../../src/domain/ids.ts';
import {
  type BatchKey,
  batchId,
  buildBody,
  cutBatch,
  frameOverhead,
  itemBytes,
  itemText,
  largestPayloadAllowed,
  type Operation,
  type OperationKey,
  operationId,
  type RequestFrame,
} from '../../src/domain/request.ts';
import { utf8Length } from '../../src/domain/utf8.ts';
import { failure, sha256Hex } from './support.ts';

const words = fc.string({ unit: 'grapheme', maxLength: 6 }).filter((text) => !/\0|\p{Surrogate}/u.test(text));

const frames: fc.Arbitrary<RequestFrame> = fc.record({
  open: words,
  itemOpen: words,
  itemClose: words,
  separator: words,
  close: words,
  operationId: fc.option(words.map((word) => `operation id ${word}`)),
});

/** A frame as the http adapter uses it: the body is JSON. */
const jsonFrame: RequestFrame = {
  open: '{"members":[',
  itemOpen: '{"member":',
  itemClose: '}',
  separator: ',',
  close: ']}',
  operationId: 'operation_id',
};

const operations = fc
  .array(fc.dictionary(words, words, { maxKeys: 3 }), { maxLength: 12 })
  .map((payloads) => payloads.map((payload, i) => operation(i, canonicalJson(payload))));

function operation(number: number, payload: string): Operation {
  return { id: sha256FromHex(sha256Hex(`${number}`)), identity: `{"n":"${number}"}`, payload };
}

const bytesOf = (text: string): number => Buffer.byteLength(text, 'utf8');

describe('byte counting', () => {
  it('counts UTF-8 as every encoder writes it, lone surrogates included', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), loneHalves()), (text) => {
        expect(utf8Length(text)).toBe(bytesOf(text));
      }),
    );
  });

  it('counts the first and last character of every length', () => {
    for (const point of [0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff]) {
      const text = String.fromCodePoint(point);
      expect(utf8Length(`a${text}b`)).toBe(bytesOf(text) + 2);
    }
  });

  it('gives the exact bytes of items and of the body', () => {
    fc.assert(
      fc.property(frames, operations, (frame, ops) => {
        for (const op of ops) expect(itemBytes(frame, op)).toBe(bytesOf(itemText(frame, op)));
        const cut = cutBatch(frame, ops, { rows: 100, bytes: 1_000_000 });
        expect(cut).toEqual({ end: ops.length, bytes: bytesOf(buildBody(frame, ops)) });
        expect(frameOverhead(frame)).toBe(bytesOf(buildBody(frame, [])));
      }),
    );
  });
});

function loneHalves(): fc.Arbitrary<string> {
  return fc.array(fc.constantFrom('\ud83d', '\ude00', 'a', 'é', '€', '😀')).map((parts) => parts.join(''));
}

describe('a request body', () => {
  it('holds each stored payload in order, its operation id first', () => {
    const ops = [operation(1, '{"email":"a@x"}'), operation(2, '{}')];
    expect(JSON.parse(buildBody(jsonFrame, ops))).toEqual({
      members: [
        { member: { operation_id: ops[0]?.id, email: 'a@x' } },
        { member: { operation_id: ops[1]?.id } },
      ],
    });
    expect(buildBody({ ...jsonFrame, operationId: null }, ops)).toBe(
      '{"members":[{"member":{"email":"a@x"}},{"member":{}}]}',
    );
    expect(buildBody(jsonFrame, [])).toBe('{"members":[]}');
  });

  it('rule 2: is rebuilt from the stored texts byte for byte, and another order of operations shows', () => {
    fc.assert(
      fc.property(frames, operations, (frame, ops) => {
        const [storedFrame, storedOps] = [structuredClone(frame), structuredClone(ops)];
        expect(sha256Hex(buildBody(storedFrame, storedOps))).toBe(sha256Hex(buildBody(frame, ops)));
        const named = { ...frame, operationId: 'operation id' }; // longer than any generated name
        const turned = ops.toReversed();
        expect(buildBody(named, turned) === buildBody(named, ops)).toBe(ops.length < 2);
      }),
    );
  });

  it('escapes the name of the field that holds the operation id', () => {
    const frame = { ...jsonFrame, operationId: 'a"b' };
    expect(JSON.parse(buildBody(frame, [operation(1, '{}')]))).toEqual({
      members: [{ member: { 'a"b': operation(1, '').id } }],
    });
  });

  it('refuses a payload that already has that field, but not one that has it deeper or as a value', () => {
    const taken = failure(() => itemText(jsonFrame, operation(1, '{"operation_id":"x"}')));
    expect(taken).toMatchObject({ code: 'config.invalid', details: { field: 'operation_id' } });
    for (const payload of ['{"a":{"operation_id":1}}', '{"a":"\\"operation_id\\":"}']) {
      expect(JSON.parse(itemText(jsonFrame, operation(1, payload))).member).toMatchObject(
        JSON.parse(payload),
      );
    }
  });
});

describe('cutting', () => {
  const limits = fc.record({ rows: fc.integer({ min: 1, max: 5 }), bytes: fc.integer({ min: 0, max: 700 }) });

  it('covers all operations in order, each request within both limits and unable to take one more', () => {
    fc.assert(
      fc.property(frames, operations, limits, (frame, ops, { rows, bytes: slack }) => {
        const largest = Math.max(0, ...ops.map((op) => bytesOf(buildBody(frame, [op]))));
        const bytes = largest + slack;
        const sent: Operation[] = [];
        for (let from = 0; from < ops.length; ) {
          const cut = cutBatch(frame, ops, { rows, bytes }, from);
          const taken = ops.slice(from, cut.end);
          expect(taken.length).toBeGreaterThan(0);
          expect(taken.length).toBeLessThanOrEqual(rows);
          expect(bytesOf(buildBody(frame, taken))).toBe(cut.bytes);
          expect(cut.bytes).toBeLessThanOrEqual(bytes);
          if (cut.end < ops.length && taken.length < rows) {
            expect(bytesOf(buildBody(frame, ops.slice(from, cut.end + 1)))).toBeGreaterThan(bytes);
          }
          sent.push(...taken);
          from = cut.end;
        }
        expect(sent).toEqual(ops);
      }),
    );
  });

  it('payload-2mb: refuses an operation that alone is over the limit, by its id', () => {
    const op = operation(7, `{"note":"${'x'.repeat(3_000_000)}"}`);
    const refused = failure(() => cutBatch(jsonFrame, [op], { rows: 10, bytes: 1_000_000 }));
    expect(refused).toMatchObject({ code: 'data.operation-too-large', details: { operation: op.id } });
    expect(cutBatch(jsonFrame, [], { rows: 10, bytes: 1 })).toEqual({ end: 0, bytes: 14 });
  });

  it('tells the seal the largest payload to the byte', () => {
    fc.assert(
      fc.property(frames, operations, fc.integer({ min: 0, max: 400 }), (frame, ops, limit) => {
        const largest = largestPayloadAllowed(frame, limit);
        for (const op of ops.filter((candidate) => candidate.payload !== '{}')) {
          expect(bytesOf(op.payload) <= largest).toBe(bytesOf(buildBody(frame, [op])) <= limit);
        }
        if (largest >= 2) expect(bytesOf(buildBody(frame, [operation(0, '{}')]))).toBeLessThanOrEqual(limit);
      }),
    );
  });
});

const hash = fc.nat().map((n) => sha256FromHex(sha256Hex(`${n}`)));
const number = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n });

const operationKeys: fc.Arbitrary<OperationKey> = fc.record({
  mirror: words,
  run: number.map(runId),
  revision: number.map(revisionId),
  target: number.map(targetId),
  action: fc.constantFrom('upsert', 'remove'),
  identityHash: hash,
  payloadHash: fc.option(hash),
  removalHash: fc.option(hash),
  ordinal: fc.integer({ min: 1, max: 9 }),
});

const batchKeys: fc.Arbitrary<BatchKey> = fc.record({
  mirror: words,
  run: number.map(runId),
  action: fc.constantFrom('upsert', 'remove', 'init', 'finish', 'abort'),
  operations: fc.array(hash, { maxLength: 3 }),
  ordinal: fc.integer({ min: 1, max: 9 }),
});

const plainText = (value: unknown): string =>
  JSON.stringify(value, (_, part) => (typeof part === 'bigint' ? `${part}` : part));

describe('ids', () => {
  it('of operations are the named hash of one canonical JSON array, for ever', () => {
    const key: OperationKey = {
      mirror: 'log/vip "customers"',
      run: runId(12),
      revision: revisionId(3),
      target: targetId(4),
      action: 'upsert',
      identityHash: sha256FromHex(sha256Hex('identity')),
      payloadHash: sha256FromHex(sha256Hex('payload')),
      removalHash: null,
      ordinal: 1,
    };
    const encoded = canonicalJson([
      'operation',
      key.mirror,
      '12',
      '3',
      '4',
      'upsert',
      key.identityHash,
      key.payloadHash,
      null,
      1,
    ]);
    expect(operationId(key, sha256Hex)).toBe(`sha256:${sha256Hex(encoded)}`);
    const removalHash = sha256FromHex(sha256Hex('removal'));
    const removal = [
      'operation',
      key.mirror,
      '12',
      '3',
      '4',
      'remove',
      key.identityHash,
      null,
      removalHash,
      2,
    ];
    expect(
      operationId({ ...key, action: 'remove', payloadHash: null, removalHash, ordinal: 2 }, sha256Hex),
    ).toBe(`sha256:${sha256Hex(canonicalJson(removal))}`);
  });

  it('of batches are too, also without operations', () => {
    const operations = [sha256FromHex(sha256Hex('1')), sha256FromHex(sha256Hex('2'))];
    const key = { mirror: 'm', run: runId(12), action: 'remove', operations, ordinal: 2 } as const;
    const encoded = canonicalJson(['batch', 'm', '12', 'remove', 2, operations]);
    expect(batchId(key, sha256Hex)).toBe(`sha256:${sha256Hex(encoded)}`);
    const finish = canonicalJson(['batch', 'm', '12', 'finish', 2, []]);
    expect(batchId({ ...key, action: 'finish', operations: [] }, sha256Hex)).toBe(
      `sha256:${sha256Hex(finish)}`,
    );
  });

  it('differ when any field differs, and only then', () => {
    fc.assert(
      fc.property(operationKeys, operationKeys, fc.nat(), (one, other, pick) => {
        const fields = Object.keys(one);
        const field = fields[pick % fields.length] ?? 'run';
        const changed: OperationKey = { ...one, [field]: Reflect.get(other, field) };
        const same = plainText(changed) === plainText(one);
        expect(operationId(changed, sha256Hex) === operationId(one, sha256Hex)).toBe(same);
      }),
    );
    fc.assert(
      fc.property(batchKeys, batchKeys, fc.nat(), (one, other, pick) => {
        const fields = Object.keys(one);
        const field = fields[pick % fields.length] ?? 'run';
        const changed: BatchKey = { ...one, [field]: Reflect.get(other, field) };
        const same = plainText(changed) === plainText(one);
        expect(batchId(changed, sha256Hex) === batchId(one, sha256Hex)).toBe(same);
      }),
    );
  });

  it('key-concat: the same characters split otherwise are another id, and so is another order', () => {
    const a = sha256FromHex(sha256Hex('a'));
    const b = sha256FromHex(sha256Hex('b'));
    const seen = new Set<string>();
    for (const mirror of ['m', 'm","1', 'm"', 'm\\"', 'm|1', '']) {
      for (const run of [1n, 11n, 111n]) {
        for (const operations of [[a, b], [b, a], [a], []]) {
          seen.add(batchId({ mirror, run: runId(run), action: 'upsert', operations, ordinal: 1 }, sha256Hex));
        }
      }
    }
    expect(seen.size).toBe(6 * 3 * 4);
  });
});
