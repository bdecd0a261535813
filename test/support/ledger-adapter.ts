/** The adapter of the ledger (ledger.ts), of each recovery kind; and, as a program, a worker that knows it. */

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { z } from 'zod';
import type {
  BatchOutcome,
  BatchRequest,
  DestinationAdapter,
  OperationOutcome,
  Receipt,
  StepOutcome,
  Writer,
  WriterContext,
} from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import { runWorker } from '../../src/worker.ts';
import { DESTINATIONS } from '../../src/worker-setup.ts';
import { LEDGER_MODES, replaces } from './ledger.ts';

const connectionSchema = z.strictObject({ base_url: z.string() });
const optionsSchema = z.strictObject({
  recovery: z.enum(['idempotent', 'lookup', 'manual']),
  mode: z.enum(LEDGER_MODES).default('direct'),
});

type Options = z.infer<typeof optionsSchema>;

export const ledgerDestination: DestinationAdapter<z.infer<typeof connectionSchema>, Options> = {
  type: 'ledger',
  connectionSchema,
  optionsSchema,
  capabilities: (_connection, { recovery, mode }) => ({
    strategies: [replaces(mode) ? 'native-replace' : 'snapshot-diff'],
    explicitRemoval: !replaces(mode),
    batchDelivery: mode === 'later' ? 'asynchronous' : 'accepted',
    recovery,
    visible: mode === 'publish' ? 'at_finish' : 'on_accept',
    maxRows: 1_000,
    maxBytes: 1_000_000,
    maxInFlight: 1,
    longestRequestMs: 30_000,
    identityFolding: [],
  }),
  targetKey: ({ base_url }) => base_url,
  frame: () => ARRAY_FRAME,
  checkFields: () => [],
  open: async ({ base_url }, options, context) => new LedgerWriter(base_url, options, context),
};

const ACCEPTED: StepOutcome = { kind: 'accepted', receipt: {} };
const NOT_THERE = { kind: 'not-applied', code: 'not-there', retryAfterMs: null, tooLarge: false } as const;
const UNKNOWN = { kind: 'unknown', code: 'no-answer' } as const;

/** Whoever is not among those that were taken was refused. */
function outcomeOf(
  operations: BatchRequest['operations'],
  taken: ReadonlySet<unknown>,
  receipt: Receipt,
): BatchOutcome {
  const has = ({ identity }: (typeof operations)[number]) => taken.has(JSON.parse(identity).id);
  if (operations.every(has)) return { kind: 'accepted', receipt };
  const outcomes = operations.map(
    (op): OperationOutcome =>
      has(op) ? { kind: 'accepted' } : { kind: 'rejected', code: 'not-taken', reason: 'it is not taken' },
  );
  return { kind: 'settled', outcomes, receipt };
}

function pending(job: string): StepOutcome {
  return { kind: 'pending', jobIds: [job], receipt: { job } };
}

interface Reply {
  readonly status: number;
  readonly body: { readonly [key: string]: unknown };
}

class LedgerWriter implements Writer {
  /** Who opened the session: one for each run. */
  readonly #session: string;

  constructor(
    private readonly base: string,
    private readonly options: Options,
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
  reconcileInit: Writer['reconcileInit'] = (receipt) =>
    this.#recovered(`sessions/${this.#session}`, receipt ?? null);
  attach = async () => ACCEPTED;
  upsert = (request: BatchRequest) => this.#send(request);
  remove = (request: BatchRequest) => this.#send(request);
  finish: Writer['finish'] = ({ idempotencyKey }) =>
    this.#step(`finish/${idempotencyKey}`, replaces(this.options.mode) ? this.#session : undefined);
  reconcileFinish: Writer['reconcileFinish'] = (request, receipt) =>
    this.options.recovery === 'idempotent' && receipt === null
      ? this.finish(request)
      : this.#recovered(`finish/${request.idempotencyKey}`, receipt);
  close = async () => undefined;

  async reconcileBatch(request: BatchRequest): Promise<BatchOutcome> {
    if (this.options.recovery === 'idempotent') return this.#send(request);
    if (this.options.mode === 'later') {
      const job = request.idempotencyKey;
      return (await this.#done(`jobs/${job}`)) ? { kind: 'staged', jobIds: [job], receipt: {} } : NOT_THERE;
    }
    const found = await this.#done(`uploads/${request.idempotencyKey}`);
    return found ? { kind: 'accepted', receipt: {} } : NOT_THERE;
  }

  async poll(request: BatchRequest, [job]: readonly string[]): Promise<BatchOutcome> {
    const { body } = await this.#ask('POST', `jobs/${job}`);
    const done = Array.isArray(body.accepted) && body.accepted.length === request.operations.length;
    return done ? { kind: 'accepted', receipt: {} } : UNKNOWN;
  }

  async abort(): Promise<StepOutcome> {
    const { status } = await this.#ask('DELETE', `sessions/${this.#session}`);
    return status === 200 ? ACCEPTED : UNKNOWN;
  }

  /** Two steps: the upload is announced and its id saved, then it is carried out. */
  async #send({ batchId, action, idempotencyKey, body, operations }: BatchRequest): Promise<BatchOutcome> {
    const made = await this.#ask(
      'POST',
      'uploads',
      JSON.stringify({
        key: idempotencyKey,
        action,
        session: this.#session,
        hidden: this.options.mode === 'publish',
      }),
    );
    if (typeof made.body.id !== 'string') return UNKNOWN;
    await this.context.progress(batchId, made.body.id);
    const path = this.options.mode === 'later' ? 'jobs' : 'uploads';
    const { status, body: answer } = await this.#ask('PUT', `${path}/${made.body.id}`, body);
    if (typeof answer.job === 'string') return { kind: 'staged', jobIds: [answer.job], receipt: {} };
    if (status === 429) return { ...NOT_THERE, code: 'http-429', retryAfterMs: 100 };
    if (!Array.isArray(answer.accepted)) return UNKNOWN;
    return outcomeOf(operations, new Set(answer.accepted), { upload: made.body.id });
  }

  async #step(path: string, body?: string): Promise<StepOutcome> {
    const said = this.options.mode === 'slow' ? 'later' : body;
    const { status, body: answer } = await this.#ask('POST', path, said);
    if (typeof answer.job === 'string') return pending(answer.job);
    return status === 200 ? ACCEPTED : UNKNOWN;
  }

  async #recovered(path: string, receipt: Receipt | null): Promise<StepOutcome> {
    if (typeof receipt?.job === 'string') return this.#asked(receipt.job);
    switch (this.options.recovery) {
      case 'idempotent':
        return this.#step(path);
      case 'lookup':
        if (this.options.mode !== 'slow') return (await this.#done(path)) ? ACCEPTED : NOT_THERE;
        return (await this.#done(`steps/${encodeURIComponent(path)}`)) ? pending(path) : NOT_THERE;
      case 'manual':
        return UNKNOWN;
    }
  }

  /** What was taken for later. */
  async #asked(job: string): Promise<StepOutcome> {
    const { body } = await this.#ask('POST', `steps/${encodeURIComponent(job)}`);
    return body.done === true ? ACCEPTED : body.done === false ? pending(job) : UNKNOWN;
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
