/** The adapter of the ledger (ledger.ts), of each recovery kind; and, as a program, a worker that knows it. */

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { z } from 'zod';
import type {
  BatchOutcome,
  BatchRequest,
  DestinationAdapter,
  StepOutcome,
  Writer,
  WriterContext,
} from '../../src/destinations/port.ts';
import { DESTINATIONS, runWorker } from '../../src/worker.ts';

const connectionSchema = z.strictObject({ base_url: z.string() });
const optionsSchema = z.strictObject({ recovery: z.enum(['idempotent', 'lookup', 'manual']) });

type Options = z.infer<typeof optionsSchema>;

export const ledgerDestination: DestinationAdapter<z.infer<typeof connectionSchema>, Options> = {
  type: 'ledger',
  connectionSchema,
  optionsSchema,
  capabilities: (_connection, { recovery }) => ({
    strategies: ['snapshot-diff'],
    explicitRemoval: true,
    batchDelivery: 'accepted',
    recovery,
    visible: 'on_accept',
    maxRows: 1_000,
    maxBytes: 1_000_000,
    maxInFlight: 1,
    longestRequestMs: 30_000,
    identityFolding: [],
  }),
  targetKey: ({ base_url }) => base_url,
  frame: () => ({ open: '[', itemOpen: '', itemClose: '', separator: ',', close: ']', operationId: null }),
  checkFields: () => [],
  open: async ({ base_url }, { recovery }, context) => new LedgerWriter(base_url, recovery, context),
};

const ACCEPTED: StepOutcome = { kind: 'accepted', receipt: {} };
const NOT_THERE = { kind: 'not-applied', code: 'not-there', retryAfterMs: null, tooLarge: false } as const;
const UNKNOWN = { kind: 'unknown', code: 'no-answer' } as const;

interface Reply {
  readonly status: number;
  readonly body: { readonly [key: string]: unknown };
}

class LedgerWriter implements Writer {
  /** Who opened the session: one for each run. */
  readonly #session: string;

  constructor(
    private readonly base: string,
    private readonly recovery: Options['recovery'],
    private readonly context: WriterContext,
  ) {
    this.#session = encodeURIComponent(`${context.owner.split('/')[1]}-${context.run}`);
  }

  preflight = async () => [];
  checkEmpty = async () => {
    const { body } = await this.#ask('GET', 'members');
    return body.count === 0 ? ({ kind: 'empty' } as const) : ({ kind: 'not-empty' } as const);
  };
  init = () => this.#step(`sessions/${this.#session}`);
  reconcileInit = () => this.#recovered(`sessions/${this.#session}`);
  attach = async () => ACCEPTED;
  upsert = (request: BatchRequest) => this.#send(request);
  remove = (request: BatchRequest) => this.#send(request);
  poll = async () => UNKNOWN;
  finish: Writer['finish'] = ({ idempotencyKey }) => this.#step(`finish/${idempotencyKey}`);
  reconcileFinish: Writer['reconcileFinish'] = ({ idempotencyKey }) =>
    this.#recovered(`finish/${idempotencyKey}`);
  close = async () => undefined;

  async reconcileBatch(request: BatchRequest): Promise<BatchOutcome> {
    if (this.recovery === 'idempotent') return this.#send(request);
    const found = await this.#done(`uploads/${request.idempotencyKey}`);
    return found ? { kind: 'accepted', receipt: {} } : NOT_THERE;
  }

  async abort(): Promise<StepOutcome> {
    const { status } = await this.#ask('DELETE', `sessions/${this.#session}`);
    return status === 200 ? ACCEPTED : UNKNOWN;
  }

  /** Two steps: the upload is announced and its id saved, then it is carried out. */
  async #send({ batchId, action, idempotencyKey, body, operations }: BatchRequest): Promise<BatchOutcome> {
    const made = await this.#ask('POST', 'uploads', JSON.stringify({ key: idempotencyKey, action }));
    if (typeof made.body.id !== 'string') return UNKNOWN;
    await this.context.progress(batchId, made.body.id);
    const { status, body: answer } = await this.#ask('PUT', `uploads/${made.body.id}`, body);
    if (status === 429) return { ...NOT_THERE, code: 'http-429', retryAfterMs: 100 };
    const accepted = Array.isArray(answer.accepted) && answer.accepted.length === operations.length;
    return accepted ? { kind: 'accepted', receipt: { upload: made.body.id } } : UNKNOWN;
  }

  async #step(path: string): Promise<StepOutcome> {
    const { status } = await this.#ask('POST', path);
    return status === 200 ? ACCEPTED : UNKNOWN;
  }

  async #recovered(path: string): Promise<StepOutcome> {
    switch (this.recovery) {
      case 'idempotent':
        return this.#step(path);
      case 'lookup':
        return (await this.#done(path)) ? ACCEPTED : NOT_THERE;
      case 'manual':
        return UNKNOWN;
    }
  }

  async #done(path: string): Promise<boolean> {
    return (await this.#ask('GET', path)).body.done === true;
  }

  /** An answer that does not come has no status. */
  async #ask(method: string, path: string, body?: string): Promise<Reply> {
    try {
      const reply = await fetch(`${this.base}/${path}`, { method, ...(body === undefined ? {} : { body }) });
      return { status: reply.status, body: z.record(z.string(), z.unknown()).parse(await reply.json()) };
    } catch {
      return { status: 0, body: {} };
    }
  }
}

if (process.argv[1] !== undefined && import.meta.filename === resolve(process.argv[1])) {
  const { values } = parseArgs({ options: { project: { type: 'string', default: '.' } } });
  const logger = new DefaultLogger('WARN');
  Runtime.install({ logger, shutdownSignals: ['SIGINT', 'SIGTERM'] });
  await runWorker(
    { projectDir: values.project, destinations: [...DESTINATIONS, ledgerDestination], logger },
    () => process.stdout.write(`${JSON.stringify({ ready: true })}\n`),
  );
}
