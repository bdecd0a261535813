/**
 * Artifacts as objects of an S3-compatible store: `<prefix>sha256/<64 digits>`. An object is written only where there is
 * none (If-None-Match), with its own name as the checksum that the store holds the upload to. A put may be sent twice
 * without harm, so the SDK's own retries are on.
 */

import type { GetObjectCommandOutput, PutObjectCommandInput, S3Client } from '@aws-sdk/client-s3';
import { type Artifact, MAX_ARTIFACT_BYTES, packArtifact } from '../../domain/artifact.ts';
import { type ArtifactReference, hexOf } from '../../domain/ids.ts';
import {
  type ArtifactStore,
  type GotArtifact,
  type PutArtifact,
  referenceOf,
} from '../../journal/artifact-store.ts';
import { MAX_PACKED_BYTES, referenceOfName, verifyPacked } from './packed.ts';
import { type S3Fault, s3Error, s3Fault } from './s3-faults.ts';

export interface S3ArtifactOptions {
  readonly bucket: string;
  /** Ends with a slash, or is empty. */
  readonly prefix: string;
  /** For one request, in ms. */
  readonly timeoutMs: number;
  /** Headers of encryption, where the bucket asks for them. */
  readonly encryption?: Pick<PutObjectCommandInput, 'ServerSideEncryption' | 'SSEKMSKeyId'>;
}

type Sdk = typeof import('@aws-sdk/client-s3');

/** How often a put is sent that comes at the same time as another one of the same object. */
const CONFLICTS = 5;
/** What one listing returns at most. */
const PAGE = 1000;

export class S3Artifacts implements ArtifactStore {
  readonly #sdk: Sdk;
  readonly #client: S3Client;
  readonly #options: S3ArtifactOptions;

  /** The client stays the caller's. */
  constructor(sdk: Sdk, client: S3Client, options: S3ArtifactOptions) {
    this.#sdk = sdk;
    this.#client = client;
    this.#options = options;
  }

  async put(artifact: Artifact): Promise<PutArtifact> {
    const { length } = artifact.bytes;
    if (length > MAX_ARTIFACT_BYTES) return { kind: 'too-large', bytes: length };
    const reference = referenceOf(artifact);
    const packed = packArtifact(artifact);
    for (let sent = 1; ; sent++) {
      const fault = await this.#write(reference, packed);
      if (fault === null) return { kind: 'stored', reference };
      if (fault.kind === 'conflict' && sent < CONFLICTS) continue;
      if (fault.kind !== 'exists') throw s3Error(fault, reference);
      const there = await this.get(reference);
      // It may have been taken away since; then it is written once more.
      if (there.kind !== 'missing')
        return { kind: there.kind === 'found' ? 'present' : 'corrupt', reference };
      if (sent === CONFLICTS) throw s3Error(fault, reference);
    }
  }

  async get(reference: ArtifactReference): Promise<GotArtifact> {
    let got: GetObjectCommandOutput;
    try {
      const command = new this.#sdk.GetObjectCommand({
        Bucket: this.#options.bucket,
        Key: this.#keyOf(reference),
      });
      got = await this.#client.send(command, this.#limits());
      if ((got.ContentLength ?? 0) <= MAX_PACKED_BYTES)
        return verifyPacked(reference, (await got.Body?.transformToByteArray()) ?? new Uint8Array());
    } catch (error) {
      const fault = s3Fault(error);
      if (fault.kind === 'missing') return { kind: 'missing' };
      throw s3Error(fault, reference);
    }
    // Not read to its end: the connection goes with it.
    if (got.Body !== undefined && 'destroy' in got.Body) got.Body.destroy();
    return { kind: 'corrupt' };
  }

  async list(after: ArtifactReference | null, limit: number): Promise<readonly ArtifactReference[]> {
    const prefix = this.#prefix();
    const found: ArtifactReference[] = [];
    let from = after === null ? undefined : this.#keyOf(after);
    for (;;) {
      const keys = await this.#keys(prefix, from, Math.min(PAGE, limit - found.length));
      for (const key of keys) {
        const reference = referenceOfName(key.slice(prefix.length));
        if (reference !== null) found.push(reference);
      }
      from = keys.at(-1);
      if (from === undefined || found.length >= limit) return found;
    }
  }

  /** `null`: it is written. */
  async #write(reference: ArtifactReference, packed: Uint8Array): Promise<S3Fault | null> {
    const command = new this.#sdk.PutObjectCommand({
      Bucket: this.#options.bucket,
      Key: this.#keyOf(reference),
      Body: packed,
      ContentType: 'application/octet-stream',
      ChecksumSHA256: Buffer.from(hexOf(reference), 'hex').toString('base64'),
      IfNoneMatch: '*',
      ...this.#options.encryption,
    });
    try {
      await this.#client.send(command, this.#limits());
      return null;
    } catch (error) {
      return s3Fault(error);
    }
  }

  async #keys(prefix: string, after: string | undefined, limit: number): Promise<readonly string[]> {
    const command = new this.#sdk.ListObjectsV2Command({
      Bucket: this.#options.bucket,
      Prefix: prefix,
      MaxKeys: limit,
      ...(after === undefined ? {} : { StartAfter: after }),
    });
    try {
      const { Contents = [] } = await this.#client.send(command, this.#limits());
      return Contents.map(({ Key }) => Key ?? '');
    } catch (error) {
      throw s3Error(s3Fault(error), null);
    }
  }

  #limits() {
    return { abortSignal: AbortSignal.timeout(this.#options.timeoutMs) };
  }

  #prefix(): string {
    return `${this.#options.prefix}sha256/`;
  }

  #keyOf(reference: ArtifactReference): string {
    return this.#prefix() + hexOf(reference);
  }
}
