/**
 * One connection with one read-only, repeatable-read transaction in which every value is printed exactly. Settings are
 * local to the transaction: behind a connection pooler they do not stay behind.
 */

import { Socket } from 'node:net';
import pg from 'pg';
import type { Column } from '../../domain/source-row.ts';
import { type BackendKey, requestCancel } from './cancel.ts';
import type { PostgresSourceConfig } from './config.ts';
import { connectFailure, queryFailure } from './failures.ts';
import { PreparedQuery } from './prepared-query.ts';
import { tlsOptions } from './tls.ts';
import { resolveColumns } from './types.ts';

const KEEP_ALIVE_MS = 30_000;
/** Longest wait for a server's good-bye, and for its taking of a cancel. */
const GOODBYE_MS = 2_000;

/** extra_float_digits 3: every version prints floats so that they read back the same; from 12 on, the shortest such text. */
function transaction(config: PostgresSourceConfig): string {
  return `
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL client_encoding = 'UTF8';
SET LOCAL standard_conforming_strings = on;
SET LOCAL DateStyle = 'ISO, YMD';
SET LOCAL IntervalStyle = 'iso_8601';
SET LOCAL TimeZone = 'UTC';
SET LOCAL extra_float_digits = 3;
SET LOCAL bytea_output = 'hex';
SET LOCAL lc_monetary = 'C';
SET LOCAL statement_timeout = ${config.statementTimeoutMs};
SET LOCAL lock_timeout = ${config.lockTimeoutMs};
SET LOCAL idle_in_transaction_session_timeout = ${config.idleInTransactionTimeoutMs}`;
}

export class Session {
  /** The first error that came outside of a statement, such as the server's reason for ending an idle transaction. */
  private stray: unknown = null;
  private ending: Promise<void> | null = null;

  private constructor(
    private readonly config: PostgresSourceConfig,
    private readonly query: string,
    private readonly client: pg.Client,
    private readonly socket: Socket,
    private readonly signal: AbortSignal,
  ) {
    client.on('error', (error: Error) => {
      this.stray ??= error;
    });
    signal.addEventListener('abort', this.onAbort, { once: true });
  }

  /** Connects and begins the transaction. @throws RetlError, or the signal's reason. */
  static async open(config: PostgresSourceConfig, query: string, signal: AbortSignal): Promise<Session> {
    signal.throwIfAborted();
    const socket = new Socket();
    const session = new Session(config, query, clientOn(socket, config), socket, signal);
    try {
      await session.client.connect();
    } catch (error) {
      await session.abandon();
      signal.throwIfAborted();
      throw connectFailure(error);
    }
    await session.guarded(() => session.client.query(transaction(config)));
    return session;
  }

  /** Checks the query and describes its columns; the portal is ready then. */
  async prepare(): Promise<readonly Column[]> {
    return this.guarded(async () => {
      const fields = await this.client.query(new PreparedQuery(this.query)).fields;
      return resolveColumns(this.client, fields);
    });
  }

  run<T extends pg.Submittable>(statement: T): T {
    return this.client.query(statement);
  }

  /** What to throw for an error of a statement: an abort explains all errors after it. */
  failure(error: unknown): unknown {
    if (this.signal.aborted) return this.signal.reason;
    const cause = error instanceof pg.DatabaseError ? error : (this.stray ?? error);
    return queryFailure(cause, this.query);
  }

  /** Good-bye between statements. Never rejects: nothing is written, so nothing can be lost by it. */
  end(): Promise<void> {
    this.ending ??= this.sayGoodbye();
    return this.ending;
  }

  /** Stops whatever the server is doing for this session, and frees it. Never rejects. */
  abandon(): Promise<void> {
    this.ending ??= this.cancelAndDestroy();
    return this.ending;
  }

  private readonly onAbort = (): void => {
    void this.abandon();
  };

  private async guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.signal.throwIfAborted();
      return result;
    } catch (error) {
      await this.abandon();
      throw this.failure(error);
    }
  }

  private async sayGoodbye(): Promise<void> {
    const timer = setTimeout(() => this.socket.destroy(), GOODBYE_MS);
    await this.client.query('COMMIT').catch(() => undefined);
    await this.client.end().catch(() => undefined);
    clearTimeout(timer);
    this.free();
  }

  /** A server that waits in a write to us notices the closed socket; one that computes notices only the cancel. */
  private async cancelAndDestroy(): Promise<void> {
    const key = this.backendKey();
    if (key !== null && !this.socket.destroyed) await requestCancel(this.config, key, GOODBYE_MS);
    this.free();
  }

  private free(): void {
    this.signal.removeEventListener('abort', this.onAbort);
    this.socket.destroy();
  }

  /** The driver keeps the two numbers without declaring them. */
  private backendKey(): BackendKey | null {
    const processId: unknown = Reflect.get(this.client, 'processID');
    const secret: unknown = Reflect.get(this.client, 'secretKey');
    return typeof processId === 'number' && typeof secret === 'number' ? { processId, secret } : null;
  }
}

/** A password that is a function is kept out of the driver's printed objects, and stops its search for one elsewhere. */
function clientOn(socket: Socket, config: PostgresSourceConfig): pg.Client {
  const password = config.password ?? '';
  return new pg.Client({
    stream: () => socket,
    host: config.host,
    port: config.port,
    database: config.database,
    user: config.user,
    password: () => password,
    ssl: tlsOptions(config.tls),
    application_name: 'retl-mirror',
    connectionTimeoutMillis: config.connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  });
}
