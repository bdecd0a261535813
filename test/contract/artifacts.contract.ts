/** What every store of artifacts must do, wherever it keeps them. Run it with a harness that can also do damage. */

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Artifact, artifactHead, MAX_ARTIFACT_BYTES, packArtifact } from '../../src/domain/artifact.ts';
import type { ArtifactReference } from '../../src/domain/ids.ts';
import { type ArtifactStore, referenceOf, verifyArtifacts } from '../../src/journal/artifact-store.ts';

export interface ArtifactHarness {
  readonly store: ArtifactStore;
  /** The same place, as another process has it open. */
  readonly other: ArtifactStore;
  /** Puts something else in the place of an artifact, behind the store's back. */
  replace(reference: ArtifactReference, by: Artifact): Promise<void>;
  /** Takes an artifact away, behind the store's back. */
  remove(reference: ArtifactReference): Promise<void>;
  close(): Promise<void>;
}

const artifact = (content: string | Uint8Array, type = 'test.bytes'): Artifact => ({
  type,
  bytes: typeof content === 'string' ? Buffer.from(content) : content,
});

let serial = 0;
/** An artifact that no other test has put. */
const fresh = (more = ''): Artifact => artifact(`${serial++} ${randomBytes(6).toString('hex')} ${more}`);

export function describeArtifactStore(name: string, open: () => Promise<ArtifactHarness>): void {
  describe(`artifacts in ${name}`, () => {
    let harness: ArtifactHarness;
    let store: ArtifactStore;

    beforeAll(async () => {
      harness = await open();
      store = harness.store;
    });
    afterAll(() => harness.close());

    async function put(given: Artifact): Promise<ArtifactReference> {
      const answer = await store.put(given);
      expect(answer).toEqual({ kind: 'stored', reference: referenceOf(given) });
      return referenceOf(given);
    }

    const expectFound = async (reference: ArtifactReference, given: Artifact): Promise<void> => {
      const got = await harness.other.get(reference);
      if (got.kind !== 'found') throw new Error(got.kind);
      expect(got.artifact.type).toBe(given.type);
      expect(Buffer.compare(got.artifact.bytes, given.bytes)).toBe(0);
    };

    async function listed(limit: number): Promise<readonly ArtifactReference[]> {
      const all: ArtifactReference[] = [];
      for (;;) {
        const page = await store.list(all.at(-1) ?? null, limit);
        all.push(...page);
        if (page.length < limit) return all;
      }
    }

    test('what is put is got, byte for byte, whatever the bytes are, and elsewhere too', async () => {
      const every = Uint8Array.from({ length: 256 }, (_, i) => i);
      const some = fc.sample(fc.uint8Array({ maxLength: 300 }), { numRuns: 5, seed: 7 });
      for (const bytes of [new Uint8Array(), every, ...some]) {
        await store.put(artifact(bytes));
        await expectFound(referenceOf(artifact(bytes)), artifact(bytes));
      }
    });

    test('a put is idempotent: the second changes nothing, and says that it was there', async () => {
      const given = fresh();
      const reference = await put(given);
      expect(await store.put(given)).toEqual({ kind: 'present', reference });
      expect(await harness.other.put(given)).toEqual({ kind: 'present', reference });
      expect((await listed(100)).filter((one) => one === reference)).toHaveLength(1);
    });

    test('of many puts of one artifact at once, one stores it and the others find it', async () => {
      const given = fresh('x'.repeat(100_000));
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? store : harness.other).put(given)),
      );
      expect(answers.map(({ kind }) => kind).sort()).toEqual([...Array(7).fill('present'), 'stored']);
      await expectFound(referenceOf(given), given);
    });

    test('the type is part of the name: the same bytes under another type are another artifact', async () => {
      const [a, b] = [artifact('same bytes', 'test.one'), artifact('same bytes', 'test.two')];
      const [first, second] = [await put(a), await put(b)];
      expect(first).not.toBe(second);
      await expectFound(first, a);
      await expectFound(second, b);
      // Nor can bytes be chosen so that one is taken for the other's head and content.
      expect(await store.get(referenceOf(artifact(packArtifact(a), 'test.bytes')))).toEqual({
        kind: 'missing',
      });
    });

    test('an unknown reference is missing', async () => {
      expect(await store.get(referenceOf(fresh()))).toEqual({ kind: 'missing' });
    });

    test('what is too large is refused, the largest is kept', async () => {
      const largest = artifact(randomBytes(MAX_ARTIFACT_BYTES));
      await expectFound(await put(largest), largest);
      const { bytes } = largest;
      const larger = artifact(Buffer.concat([bytes, Buffer.of(0)]));
      expect(await store.put(larger)).toEqual({ kind: 'too-large', bytes: MAX_ARTIFACT_BYTES + 1 });
      expect(await store.get(referenceOf(larger))).toEqual({ kind: 'missing' });
    });

    test('what is no type’s name is refused before anything is written', async () => {
      const before = await listed(100);
      for (const type of ['', 'Upper', 'a b', '../up', `a${'b'.repeat(64)}`, 'a.', 'ü'])
        await expect(store.put(artifact('x', type))).rejects.toThrow(RangeError);
      expect(await listed(100)).toEqual(before);
    });

    test('a listing is ascending and whole, in pages of any size', async () => {
      for (let i = 0; i < 5; i++) await put(fresh());
      const all = await listed(1000);
      expect(all.length).toBeGreaterThan(5);
      expect(all).toEqual([...all].sort());
      expect(await listed(1)).toEqual(all);
      expect(await listed(3)).toEqual(all);
      expect(await store.list(all.at(-1) ?? null, 10)).toEqual([]);
    });

    test('damaged bytes are found and named, never given, never overwritten, and spoil no other artifact', async () => {
      const sound = fresh();
      await put(sound);
      const damages: readonly ((a: Artifact) => Artifact)[] = [
        ({ type, bytes }) =>
          artifact(
            Uint8Array.from(bytes, (b, i) => (i === 2 ? b ^ 1 : b)),
            type,
          ),
        ({ type, bytes }) => artifact(bytes.subarray(0, -1), type),
        ({ type, bytes }) => artifact(Buffer.concat([bytes, Buffer.of(0)]), type),
        ({ type }) => artifact(new Uint8Array(), type),
        ({ bytes }) => artifact(bytes, 'test.other'),
        // What is there is sound by itself, and not what was asked for.
        () => sound,
      ];
      const damaged: ArtifactReference[] = [];
      for (const damage of damages) {
        const given = fresh();
        const reference = await put(given);
        await harness.replace(reference, damage(given));
        expect(await store.get(reference)).toEqual({ kind: 'corrupt' });
        expect(await store.put(given)).toEqual({ kind: 'corrupt', reference });
        expect(await store.get(reference)).toEqual({ kind: 'corrupt' });
        damaged.push(reference);
      }
      const { faults, checked } = await verifyArtifacts(store);
      expect(faults).toEqual(damaged.sort().map((reference) => ({ reference, kind: 'corrupt' })));
      expect(checked).toBe((await listed(1000)).length);
      await expectFound(referenceOf(sound), sound);
      for (const reference of damaged) await harness.remove(reference);
      expect((await verifyArtifacts(store)).faults).toEqual([]);
    });

    test('one that was lost is named among those that should be there, and can be put again', async () => {
      const [kept, lost] = [fresh(), fresh()];
      const references = [await put(kept), await put(lost)];
      await harness.remove(referenceOf(lost));
      expect(await store.get(referenceOf(lost))).toEqual({ kind: 'missing' });
      const { faults } = await verifyArtifacts(store, references);
      expect(faults).toEqual([{ reference: referenceOf(lost), kind: 'missing' }]);
      await put(lost);
      expect((await verifyArtifacts(store, references)).faults).toEqual([]);
    });
  });
}

/** As stores outside of the journal keep it. */
export function packed(given: Artifact): Buffer {
  return Buffer.concat([artifactHead(given.type), given.bytes]);
}
