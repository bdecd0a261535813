/**
 * A journal's PostgreSQL and a Temporal server that keep their state in files, and come back at the address that they had: told to
 * stop, or as a machine does that has lost its power.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, Client as TemporalSdkClient } from '@temporalio/client';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts';
import { freePort } from '../../src/dev/ports.ts';
import { startTemporalServer, type TemporalServer } from '../../src/dev/temporal-server.ts';
import type { SystemOptions } from './system.ts';

export interface Outage {
  /** Nobody tells the server to stop: nothing is flushed, and the next start recovers. */
  readonly power: boolean;
  /** How long it is away. */
  readonly awayMs: number;
}

const RESTART: Outage = { power: false, awayMs: 2_000 };

export class Servers {
  private constructor(
    private readonly folder: string,
    private journal: EmbeddedPostgres,
    private temporal: TemporalServer,
    private readonly connection: Connection,
  ) {}

  static async start(): Promise<Servers> {
    const folder = await mkdtemp(join(tmpdir(), 'retl-servers-'));
    const journal = await startJournal(folder, await freePort());
    const temporal = await startTemporal(folder, await freePort());
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

  async restartJournal({ power, awayMs } = RESTART): Promise<void> {
    const { port, pid } = this.journal;
    // Immediate mode.
    if (power) process.kill(pid, 'SIGQUIT');
    await this.journal.stop();
    await sleep(awayMs);
    this.journal = await again(() => startJournal(this.folder, port));
    if (this.journal.port !== port) throw new Error('the journal has come back elsewhere');
  }

  async restartTemporal({ power, awayMs } = RESTART): Promise<void> {
    const { address, pid } = this.temporal;
    if (power && pid !== null) process.kill(pid, 'SIGKILL');
    await this.temporal.stop();
    await sleep(awayMs);
    this.temporal = await again(() => startTemporal(this.folder, Number(address.split(':')[1])));
    if (this.temporal.address !== address) throw new Error('Temporal has come back elsewhere');
  }

  async stop(): Promise<void> {
    await this.connection.close();
    await Promise.all([this.journal.stop(), this.temporal.stop()]);
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

function startJournal(folder: string, port: number): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({
    kind: 'kept',
    folder: join(folder, 'journal'),
    choosePort: async () => port,
  });
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
