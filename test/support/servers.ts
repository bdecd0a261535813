/** A journal's PostgreSQL and a Temporal server that keep their state in files, and restart at the address that they had. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, Client as TemporalSdkClient } from '@temporalio/client';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';
import { startTemporalServer, type TemporalServer } from '../../src/dev/temporal-server.ts';
import type { SystemOptions } from './system.ts';

/** How long a server is away. */
const AWAY_MS = 2_000;

export class Servers {
  private constructor(
    private readonly folder: string,
    private journal: EmbeddedPostgres,
    private temporal: TemporalServer,
    private readonly connection: Connection,
  ) {}

  /** `port`: where it would like the journal to listen; Temporal listens elsewhere. */
  static async start(port: number): Promise<Servers> {
    const folder = await mkdtemp(join(tmpdir(), 'retl-servers-'));
    const journal = await startJournal(folder, port);
    const temporal = await startTemporal(folder, port - 47_000);
    const admin = new pg.Client({ connectionString: journal.adminUrl });
    await admin.connect();
    await admin.query('create database journal');
    await admin.end();
    return new Servers(folder, journal, temporal, await Connection.connect({ address: temporal.address }));
  }

  /** What a system needs to be on these servers. */
  get options(): Required<Pick<SystemOptions, 'temporal' | 'journal'>> {
    const url = new URL(this.journal.adminUrl);
    url.pathname = '/journal';
    return {
      temporal: {
        client: new TemporalSdkClient({ connection: this.connection }),
        address: this.temporal.address,
      },
      journal: { url: url.href, adminUrl: this.journal.adminUrl, drop: async () => undefined },
    };
  }

  async restartJournal(): Promise<void> {
    const { port } = this.journal;
    await this.journal.stop();
    await sleep(AWAY_MS);
    this.journal = await startJournal(this.folder, port);
    if (this.journal.port !== port) throw new Error('the journal has come back elsewhere');
  }

  async restartTemporal(): Promise<void> {
    const { address } = this.temporal;
    await this.temporal.stop();
    await sleep(AWAY_MS);
    this.temporal = await startTemporal(this.folder, Number(address.split(':')[1]));
    if (this.temporal.address !== address) throw new Error('Temporal has come back elsewhere');
  }

  async stop(): Promise<void> {
    await this.connection.close();
    await Promise.all([this.journal.stop(), this.temporal.stop()]);
    await rm(this.folder, { recursive: true, force: true });
  }
}

function startJournal(folder: string, port: number): Promise<EmbeddedPostgres> {
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
