/** Opens the store of artifacts that a project has chosen. */

import { Agent } from 'node:https';
import { resolve } from 'node:path';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import type { ArtifactStore } from '../../journal/artifact-store.ts';
import { journalArtifacts } from '../../journal/artifacts.ts';
import type { Queryable } from '../../journal/pool.ts';
import { FileArtifacts } from './files.ts';
import type { ArtifactOptions, S3Options } from './options.ts';
import { type S3ArtifactOptions, S3Artifacts } from './s3.ts';

export interface OpenArtifacts {
  readonly store: ArtifactStore;
  /** Lets connections go; the journal's stay its own. */
  close(): void;
}

/** @param projectDir what a relative folder is looked for in */
export async function openArtifacts(
  options: ArtifactOptions,
  journal: Queryable,
  projectDir: string,
): Promise<OpenArtifacts> {
  switch (options.type) {
    case 'journal':
      return { store: journalArtifacts(journal), close: () => undefined };
    case 'files':
      return { store: new FileArtifacts(resolve(projectDir, options.folder)), close: () => undefined };
    case 's3':
      return openS3(options);
  }
}

async function openS3(options: S3Options): Promise<OpenArtifacts> {
  // The SDK is large: it is loaded where it is needed.
  const sdk = await import('@aws-sdk/client-s3');
  const client = new sdk.S3Client(clientConfig(options));
  const { bucket, prefix, timeout_ms: timeoutMs } = options;
  const store = new S3Artifacts(sdk, client, { bucket, prefix, timeoutMs, ...encryptionOf(options) });
  return { store, close: () => client.destroy() };
}

function clientConfig(options: S3Options): S3ClientConfig {
  const { endpoint, access_key_id: accessKeyId, secret_access_key: secretAccessKey } = options;
  const { session_token: sessionToken, ca } = options;
  const hasKeys = accessKeyId !== undefined && secretAccessKey !== undefined;
  const credentials = { accessKeyId: accessKeyId ?? '', secretAccessKey: secretAccessKey ?? '' };
  return {
    region: options.region,
    forcePathStyle: options.path_style ?? endpoint !== undefined,
    followRegionRedirects: false,
    // Uploads carry a checksum of their own, and what is read is verified: stores that know no other need not be asked.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(ca === undefined ? {} : { requestHandler: { httpsAgent: new Agent({ keepAlive: true, ca }) } }),
    ...(hasKeys
      ? { credentials: { ...credentials, ...(sessionToken === undefined ? {} : { sessionToken }) } }
      : {}),
  };
}

function encryptionOf({ encryption }: S3Options): Pick<S3ArtifactOptions, 'encryption'> {
  if (encryption === undefined) return {};
  if (encryption === 'AES256') return { encryption: { ServerSideEncryption: 'AES256' } };
  return { encryption: { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: encryption.kms_key_id } };
}
