/** The ports of the model: a source in memory, and the adapter of the destination, as one worker's life sees both. */

import { z } from 'zod';
import type {
  BatchOutcome,
  DestinationAdapter,
  Receipt,
  StepOutcome,
  Writer,
} from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import type { MirrorSettings } from '../../src/domain/settings.ts';
import type { Column } from '../../src/domain/source-row.ts';
import type { SourceAdapter } from '../../src/sources/port.ts';
import { type DestinationPlan, type ModelDestination, openingOf } from './destination.ts';
import type { Life } from './life.ts';

const nothing = z.object({});

function column(name: string): Column {
  return { name, typeName: 'text', json: (raw) => JSON.stringify(raw), text: (raw) => raw };
}

/** `rows` is asked when a snapshot is opened. */
export function modelSource(rows: () => ReadonlyMap<string, string>, life: Life): SourceAdapter {
  const columns = [column('id'), column('v')];
  return {
    type: 'model',
    connectionSchema: nothing,
    describe: async () => columns,
    async open() {
      const snapshot = [...rows()];
      return {
        columns,
        async *pages() {
          await life.request('reading');
          yield snapshot;
          await life.request('read');
        },
        close: async () => undefined,
      };
    },
  };
}

/** Without a life it says what it is, and opens nothing. */
export function modelAdapter(to: ModelDestination, life: Life | null): DestinationAdapter {
  return {
    type: 'model',
    connectionSchema: nothing,
    optionsSchema: nothing,
    capabilities: () => ({
      strategies: [to.replacement === 'none' ? 'snapshot-diff' : 'native-replace'],
      explicitRemoval: true,
      batchDelivery: to.asynchronous ? 'asynchronous' : 'accepted',
      maxStaged: 3,
      recovery: to.kind,
      visible: to.replacement === 'at_finish' ? 'at_finish' : 'on_accept',
      maxRows: 1000,
      maxBytes: 1_000_000,
      maxInFlight: 8,
      longestRequestMs: 1_000,
      identityFolding: [],
    }),
    targetKey: () => to.name,
    frame: () => ARRAY_FRAME,
    checkFields: () => [],
    async open() {
      if (life === null) throw new Error('nobody is there to open it');
      return modelWriter(to, life);
    },
  };
}

const ACCEPTED: StepOutcome = { kind: 'accepted', receipt: {} };
const NOT_FOUND: StepOutcome = {
  kind: 'not-applied',
  code: 'not-found',
  retryAfterMs: null,
  tooLarge: false,
};
const UNKNOWN: StepOutcome = { kind: 'unknown', code: 'cannot-tell' };

function modelWriter(to: ModelDestination, life: Life): Writer {
  /** A request: what happens before it leaves, what it does, and what happens before its answer is read. */
  const asked = async <T>(name: string, work: () => T): Promise<T> => {
    await life.request(`${name} leaves`);
    if (life.late) throw new Error('held back too long');
    const answer = work();
    await life.request(`${name} is answered`);
    return answer;
  };
  const send = (request: Parameters<Writer['upsert']>[0]): Promise<BatchOutcome> =>
    asked(request.action, () => to.take(request, life.run));
  /** By the kind of the destination: again, by asking, or not at all; what was taken for later is asked about. */
  const recovered = async (
    name: string,
    receipt: Receipt | null,
    again: () => Promise<StepOutcome>,
  ): Promise<StepOutcome> => {
    if (typeof receipt?.job === 'string') return asked('poll', () => to.steps.ask(name));
    if (to.kind === 'idempotent') return again();
    if (to.kind === 'lookup') return asked('look-up', () => to.steps.found(name) ?? NOT_FOUND);
    return UNKNOWN;
  };
  const init = () => asked('init', () => to.open(life.run));
  const finish: Writer['finish'] = async (request) => {
    const uploads: string[] = [];
    if (to.replacement !== 'none')
      for await (const { batchId } of request.uploads?.() ?? []) uploads.push(batchId);
    return asked('finish', () => to.finish(request, life.run, uploads));
  };
  return {
    preflight: async () => [],
    checkEmpty: async () => ({ kind: 'empty' }),
    init,
    reconcileInit: (receipt) => recovered(openingOf(life.run), receipt ?? null, init),
    attach: async () => ACCEPTED,
    upsert: send,
    remove: send,
    poll: (request, jobIds) => asked('poll', () => to.poll(request, jobIds)),
    finish,
    reconcileBatch: (request) =>
      to.kind === 'idempotent' ? send(request) : asked('look-up', () => to.lookUp(request)),
    reconcileFinish: (request, receipt) => recovered(request.batchId, receipt, () => finish(request)),
    abort: () => asked('abort', () => to.close()),
    close: async () => undefined,
  };
}

interface SettingsPlan extends DestinationPlan {
  readonly rows: number;
  readonly inFlight: number;
  readonly limit?: number;
  readonly tolerated?: number;
  readonly refreshes?: boolean;
}

/** The settings of a mirror of the model. */
export function modelSettings(
  mirror: string,
  { rows, inFlight, limit, tolerated, refreshes, replacement = 'none' }: SettingsPlan,
): MirrorSettings {
  const replaces = replacement !== 'none';
  return {
    mirror,
    strategy: replaces ? 'native-replace' : 'snapshot-diff',
    source: { type: 'model', connection: 'model', connectionOptions: {}, query: 'model', key: ['id'] },
    mapping: {
      kind: 'rules',
      members: [{ identity: { id: { column: 'id' } }, payload: { v: { column: 'v' } }, when: [] }],
    },
    destination: { type: 'model', connection: 'model', connectionOptions: {}, options: {} },
    baseline: { kind: replaces ? 'replace' : 'new-empty', attested: null },
    batch: { rows, bytes: 100_000, inFlight, pollDeadlineMs: 3_600_000 },
    safety: {
      maxRemovalShare: null,
      maxRemovals: limit ?? null,
      emptySnapshot: 'allow',
      approvalDeadlineMs: 86_400_000,
    },
    onRejection: replaces || tolerated === undefined ? { kind: 'stop' } : rejections(tolerated),
    refreshAfterMs: refreshes === true ? 1 : null,
    resumeMaxAgeMs: 86_400_000,
  };
}

/** Within none it delivers everything else, and holds. */
function rejections(tolerated: number): MirrorSettings['onRejection'] {
  return tolerated === 0 ? { kind: 'continue' } : { kind: 'tolerate', max: tolerated, maxShare: null };
}
