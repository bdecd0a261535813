/** The journal's PostgreSQL and Temporal, each on a disk of its own, stopped and started as a machine would that loses its power. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, Client as TemporalSdkClient } from '@temporalio/client';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';
import { freePort } from '../../src/dev/ports.ts';
import { startTemporalServer, type TemporalServer } from '../../src/dev/temporal-server.ts';
import type { TestDatabase } from '../support/postgres.ts';

export class Servers {
  private constructor(
    private readonly folder: string,
    private postgres: EmbeddedPostgres,
    private temporal: TemporalServer,
    private readonly connection: Connection,
    readonly client: TemporalSdkClient,
    readonly journal: TestDatabase,
  ) {}

  static async start(): Promise<Servers> {
    const folder = await mkdtemp(join(tmpdir(), 'retl-chaos-'));
    const postgres = await startPostgres(folder, await freePort());
    const temporal = await startTemporal(folder, await freePort());
    const admin = new pg.Client({ connectionString: postgres.adminUrl });
    await admin.connect();
    await admin.query('create database journal');
    await admin.end();
    const url = new URL(postgres.adminUrl);
    url.pathname = '/journal';
    const connection = await Connection.connect({ address: temporal.address });
    const client = new TemporalSdkClient({ connection });
    const journal = { url: url.href, adminUrl: postgres.adminUrl, drop: async () => undefined };
    return new Servers(folder, postgres, temporal, connection, client, journal);
  }

  get address(): string {
    return this.temporal.address;
  }

  /** @param power immediate mode: connections end, nothing is flushed, and the next start recovers from the log. */
  async restartJournal(power: boolean, downMs: number): Promise<void> {
    if (power) process.kill(this.postgres.pid, 'SIGQUIT');
    await this.postgres.stop();
    await sleep(downMs);
    const { port } = this.postgres;
    this.postgres = await again(() => startPostgres(this.folder, port));
    if (this.postgres.port !== port) throw new Error('the journal has come back elsewhere');
  }

  async restartTemporal(power: boolean, downMs: number): Promise<void> {
    const { address, pid } = this.temporal;
    if (power && pid !== null) process.kill(pid, 'SIGKILL');
    await this.temporal.stop();
    await sleep(downMs);
    this.temporal = await again(() => startTemporal(this.folder, Number(address.split(':')[1])));
    if (this.temporal.address !== address) throw new Error('Temporal has come back elsewhere');
  }

  async stop(): Promise<void> {
    await this.connection.close();
    await Promise.all([this.postgres.stop(), this.temporal.stop()]);
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A port may be taken for a moment by what has just left it. */
async function again<T>(start: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await start();
    } catch (error) {
      if (attempt === 5) throw error;
      await sleep(1_000);
    }
  }
}

function startPostgres(folder: string, port: number): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ kind: 'kept', folder: join(folder, 'journal'), port });
}

function startTemporal(folder: string, grpc: number): Promise<TemporalServer> {
  return startTemporalServer({
    projectFolder: resolve(import.meta.dirname, '..', '..'),
    folder: join(folder, 'temporal'),
    state: 'file',
    ports: { grpc, ui: grpc + 1_000 },
    notice: () => undefined,
  });
}
