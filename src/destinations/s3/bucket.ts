/**
 * The few calls that the adapter makes of an object store, each sent at most once: the SDK's own retries are off, so that
 * an answer that was lost stays visible (rule 3).
 */

import { createHash } from 'node:crypto';
import { Agent } from 'node:https';
import type { PutObjectCommandInput, S3Client, S3ClientConfig } from '@aws-sdk/client-s3';
import type { S3Connection } from './connection.ts';
import { type Failure, type Refusal, refusalOf } from './failures.ts';
import type { S3Options } from './options.ts';

export interface StoredObject {
  readonly key: string;
  readonly bytes: number;
  readonly etag: string;
}

export interface Listing {
  readonly kind: 'listed';
  readonly objects: readonly StoredObject[];
  /** Common prefixes up to the next slash, where they were asked for. */
  readonly folders: readonly string[];
  /** Where the listing goes on; `null`: it is whole. */
  readonly next: string | null;
}

/** Under what condition an object is written. */
export type Condition = { readonly etag: string } | 'absent';

export type Put = { readonly kind: 'stored'; readonly etag: string } | { readonly kind: 'precondition' };

/** Objects that one request lists or deletes at most. */
export const PAGE = 1000;

type Sdk = typeof import('@aws-sdk/client-s3');

export class Bucket {
  readonly #sdk: Sdk;
  readonly #client: S3Client;
  readonly #name: string;
  readonly #encryption: Partial<PutObjectCommandInput>;
  readonly #timeoutMs: number;
  readonly #signal: AbortSignal;

  private constructor(sdk: Sdk, connection: S3Connection, options: S3Options, signal: AbortSignal) {
    this.#sdk = sdk;
    this.#client = new sdk.S3Client(clientConfig(connection));
    this.#name = options.bucket;
    this.#encryption = encryptionOf(options);
    this.#timeoutMs = connection.timeout_ms;
    this.#signal = signal;
  }

  /** The SDK is large: it is loaded where a mirror needs it. */
  static async open(connection: S3Connection, options: S3Options, signal: AbortSignal): Promise<Bucket> {
    return new Bucket(await import('@aws-sdk/client-s3'), connection, options, signal);
  }

  /** Writes an object whole, or not at all. `unknown` where the answer is lost. */
  async put(key: string, body: Buffer, contentType: string, condition: Condition): Promise<Put | Failure> {
    const done = await this.#send((abortSignal) =>
      this.#client.send(
        new this.#sdk.PutObjectCommand({
          Bucket: this.#name,
          Key: key,
          Body: body,
          ContentType: contentType,
          ChecksumSHA256: createHash('sha256').update(body).digest('base64'),
          ...this.#encryption,
          ...(condition === 'absent' ? { IfNoneMatch: '*' } : { IfMatch: condition.etag }),
        }),
        { abortSignal },
      ),
    );
    if (done.kind === 'answer') {
      const etag = done.value.ETag;
      return etag === undefined ? { kind: 'unknown', code: 'no-etag' } : { kind: 'stored', etag };
    }
    // A store may say of an object that must match and is not there that it is absent.
    return done.kind === 'absent' ? { kind: 'precondition' } : done;
  }

  async get(
    key: string,
  ): Promise<
    | { readonly kind: 'found'; readonly body: Buffer; readonly etag: string }
    | { readonly kind: 'absent' }
    | Failure
  > {
    const done = await this.#send(async (abortSignal) => {
      const command = new this.#sdk.GetObjectCommand({ Bucket: this.#name, Key: key });
      const { Body, ETag } = await this.#client.send(command, { abortSignal });
      return { body: Buffer.from((await Body?.transformToByteArray()) ?? []), etag: ETag ?? '' };
    });
    if (done.kind === 'answer') return { kind: 'found', ...done.value };
    return readFailure(done);
  }

  async list(
    prefix: string,
    from: string | null,
    folders: boolean,
  ): Promise<Listing | { readonly kind: 'absent' } | Failure> {
    const done = await this.#send((abortSignal) =>
      this.#client.send(
        new this.#sdk.ListObjectsV2Command({
          Bucket: this.#name,
          Prefix: prefix,
          MaxKeys: PAGE,
          ...(folders ? { Delimiter: '/' } : {}),
          ...(from === null ? {} : { ContinuationToken: from }),
        }),
        { abortSignal },
      ),
    );
    if (done.kind !== 'answer') return readFailure(done);
    const { Contents = [], CommonPrefixes = [], NextContinuationToken } = done.value;
    return {
      kind: 'listed',
      objects: Contents.map(({ Key, Size, ETag }) => ({
        key: Key ?? '',
        bytes: Size ?? -1,
        etag: ETag ?? '',
      })),
      folders: CommonPrefixes.map(({ Prefix }) => Prefix ?? ''),
      next: NextContinuationToken ?? null,
    };
  }

  /** Deletes up to {@link PAGE} objects; deleting one that is not there succeeds. */
  async remove(keys: readonly string[]): Promise<{ readonly kind: 'removed' } | Failure> {
    const done = await this.#send((abortSignal) =>
      this.#client.send(
        new this.#sdk.DeleteObjectsCommand({
          Bucket: this.#name,
          Delete: { Objects: keys.map((Key) => ({ Key })), Quiet: true },
        }),
        { abortSignal },
      ),
    );
    if (done.kind !== 'answer') return readFailure(done, 's3-no-such-key');
    const [first] = done.value.Errors ?? [];
    if (first === undefined) return { kind: 'removed' };
    const denied = first.Code === 'AccessDenied';
    if (denied) return { kind: 'misconfigured', code: 's3-access-denied', reason: 'DeleteObject is denied.' };
    return { kind: 'not-applied', code: 'not-all-deleted', retryAfterMs: null, tooLarge: false };
  }

  close(): void {
    this.#client.destroy();
  }

  async #send<T>(
    call: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ readonly kind: 'answer'; readonly value: T } | Refusal> {
    if (this.#signal.aborted) {
      return { kind: 'not-applied', code: 'cancelled', retryAfterMs: null, tooLarge: false };
    }
    try {
      const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(this.#timeoutMs)]);
      return { kind: 'answer', value: await call(signal) };
    } catch (error) {
      return refusalOf(error);
    }
  }
}

/** A read has no condition that could fail. */
function readFailure(refusal: Refusal): { readonly kind: 'absent' } | Failure;
function readFailure(refusal: Refusal, absent: string): Failure;
function readFailure(refusal: Refusal, absent?: string): { readonly kind: 'absent' } | Failure {
  if (refusal.kind === 'precondition') return { kind: 'unknown', code: 'http-412' };
  if (refusal.kind === 'absent' && absent !== undefined) return { kind: 'unknown', code: absent };
  return refusal;
}

function clientConfig(connection: S3Connection): S3ClientConfig {
  const { endpoint, access_key_id: accessKeyId, secret_access_key: secretAccessKey } = connection;
  const { session_token: sessionToken, tls } = connection;
  return {
    region: connection.region,
    forcePathStyle: connection.path_style ?? endpoint !== undefined,
    maxAttempts: 1,
    followRegionRedirects: false,
    // Each upload carries the checksum that the store is to hold it to; stores that know no other need not be asked for one.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: connection.connect_timeout_ms,
      httpsAgent: new Agent({
        keepAlive: true,
        maxSockets: 16,
        ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      }),
    },
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(accessKeyId === undefined || secretAccessKey === undefined
      ? {}
      : {
          credentials: {
            accessKeyId,
            secretAccessKey,
            ...(sessionToken === undefined ? {} : { sessionToken }),
          },
        }),
  };
}

function encryptionOf({ encryption }: S3Options): Partial<PutObjectCommandInput> {
  if (encryption === undefined) return {};
  if (encryption === 'AES256') return { ServerSideEncryption: 'AES256' };
  return { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: encryption.kms_key_id };
}
