/**
 * A mirror driven step by step through the real activities and the real journal, between a source and a destination that
 * write down what they are asked.
 */

import { noopMetricMeter } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { z } from 'zod';
import { bindDestination, sha256Bytes } from '../../src/activities/binding.ts';
import type { Configuration } from '../../src/activities/deps.ts';
import { type Activities, createActivities } from '../../src/activities/index.ts';
import type { RunRef } from '../../src/activities/results.ts';
import { RunMetrics } from '../../src/activities/run-metrics.ts';
import { parseSettings, settingsText } from '../../src/config/settings-text.ts';
import type { Capabilities, DestinationAdapter, Writer, WriterContext } from '../../src/destinations/port.ts';
import type { MirrorProjection } from '../../src/domain/member.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import type { MirrorSettings } from '../../src/domain/settings.ts';
import type { Column } from '../../src/domain/source-row.ts';
import { admit } from '../../src/journal/runs.ts';
import type { SourceAdapter } from '../../src/sources/port.ts';
import { modelSettings } from '../model/adapters.ts';
import type { TestJournal } from './journal.ts';

export interface Call {
  readonly name: keyof Writer;
  readonly args: readonly unknown[];
}

/** What a writer answers in place of an acceptance; it may use the context. */
export type Answers = { -readonly [Name in keyof Writer]?: (context: WriterContext) => unknown };

const ACCEPTED = { kind: 'accepted', receipt: {} } as const;
const nothing = z.object({});
let serial = 0;

export class RecordedMirror {
  readonly calls: Call[] = [];
  readonly contexts: WriterContext[] = [];
  /** How often the source was read, and how many rows were mapped. */
  reads = 0;
  mapped = 0;
  rows: readonly (readonly [id: string, v: string])[] = [];
  answers: Answers = {};
  /** Whether activities are told to stop from their beginning. */
  stopping = false;
  readonly settings: MirrorSettings;
  #ref: RunRef = { run: '', firstRunId: '' };

  constructor(
    private readonly journal: TestJournal,
    mirror: string,
    private readonly capabilities: Partial<Capabilities> = {},
  ) {
    const asynchronous = capabilities.batchDelivery === 'asynchronous';
    const replacement = capabilities.strategies?.includes('native-replace') === true ? 'on_accept' : 'none';
    this.settings = {
      ...modelSettings(mirror, { rows: 2, inFlight: 1, kind: 'lookup', asynchronous, replacement }),
      mapping: { kind: 'module', path: 'model.ts', export: 'default', digest: `sha256:${'0'.repeat(64)}` },
    };
  }

  /** A new execution, which finds what the one before has left. */
  async execution(): Promise<string> {
    const before = this.#ref.firstRunId;
    serial += 1;
    const firstRunId = `recorded-${serial}`;
    const { settings, configuration } = this;
    const destination = bindDestination({ destinations: [this.#adapter()], configuration }, settings);
    const text = configuration.text(settings);
    const answer = await admit(this.journal.runtime, {
      mirror: settings.mirror,
      strategy: settings.strategy,
      targetKey: destination.targetKey,
      settings: text,
      settingsDigest: sha256Bytes(text),
      ...settings.safety,
      maxBatchRows: destination.limits.rows,
      maxRequestBytes: destination.limits.bytes,
      mayResend: this.capabilities.recovery === 'idempotent',
      atFinish: false,
      holder: { namespace: 'model', cluster: 'model', workflowId: `mirror/${settings.mirror}`, firstRunId },
      closedHolder: before === '' ? null : before,
      resumeAfter: new Date(0),
    });
    if (answer.kind !== 'admitted') throw new Error(`not admitted: ${answer.kind}`);
    this.#ref = { run: answer.run.toString(), firstRunId };
    return answer.resume;
  }

  /** As far as the additions. */
  async sealed(rows: RecordedMirror['rows']): Promise<void> {
    this.rows = rows;
    await this.execution();
    await this.act((a, ref) => a.init(ref));
    await this.act((a, ref) => a.extract(ref));
    await this.act((a, ref) => a.seal(ref));
    await this.act((a, ref) => a.guard(ref));
  }

  act<T>(call: (activities: Activities, ref: RunRef) => Promise<T>): Promise<T> {
    const env = new MockActivityEnvironment(
      {
        workflowNamespace: 'model',
        workflowExecution: {
          workflowId: `mirror/${this.settings.mirror}`,
          runId: this.#ref.firstRunId,
        },
      },
      { logger: new DefaultLogger('ERROR', () => undefined) },
    );
    const activities = createActivities({
      journal: this.journal.runtime,
      sources: [this.#source()],
      destinations: [this.#adapter()],
      configuration: this.configuration,
      logger: { info: () => undefined, warn: () => undefined },
      metrics: new RunMetrics(noopMetricMeter),
      cluster: 'model',
      searchAttributes: false,
    });
    if (this.stopping) env.cancel();
    return env.run(() => call(activities, this.#ref));
  }

  deliver(action: 'upsert' | 'remove', pollNow = true) {
    return this.act((a, ref) => a.deliver({ ...ref, action, windowMs: 60_000, resolveOnly: false, pollNow }));
  }

  finish() {
    return this.act((a, ref) => a.finish({ ...ref, pollNow: true }));
  }

  /** Ends the run: as its operator has it, or as who finds it unsealed does. */
  abort(closing: 'aborted' | 'discarded' = 'aborted') {
    return this.act((a, ref) => a.close({ ...ref, closing, reason: null }));
  }

  promote() {
    return this.act((a, ref) => a.promote(ref));
  }

  /** Names of the calls so far, and forgets them. */
  taken(): readonly string[] {
    return this.calls
      .splice(0)
      .map((call) => call.name)
      .filter((name) => name !== 'close');
  }

  readonly configuration: Configuration = {
    mirror: async () => this.settings,
    text: settingsText,
    parse: parseSettings,
    resolve: (options) => options,
    projection: async () => this.#projection,
  };

  readonly #projection: MirrorProjection = {
    rowType: z.object({ id: z.string(), v: z.string() }),
    project: ({ id = null, v = null }) => {
      this.mapped += 1;
      return [{ identity: { id }, upsert: { id, v }, remove: { id } }];
    },
  };

  #source(): SourceAdapter {
    const column = (name: string): Column => ({
      name,
      typeName: 'text',
      json: (raw) => JSON.stringify(raw),
      text: (raw) => raw,
    });
    const columns = [column('id'), column('v')];
    const { rows } = this;
    return {
      type: 'model',
      connectionSchema: nothing,
      describe: async () => columns,
      open: async () => {
        this.reads += 1;
        return {
          columns,
          async *pages() {
            yield rows;
          },
          close: async () => undefined,
        };
      },
    };
  }

  #adapter(): DestinationAdapter {
    return {
      type: 'model',
      connectionSchema: nothing,
      optionsSchema: nothing,
      capabilities: () => ({
        strategies: ['snapshot-diff'],
        explicitRemoval: true,
        batchDelivery: 'accepted',
        recovery: 'lookup',
        visible: 'on_accept',
        maxRows: 1000,
        maxBytes: 1_000_000,
        maxInFlight: 8,
        longestRequestMs: 1_000,
        identityFolding: [],
        ...this.capabilities,
      }),
      targetKey: () => this.settings.mirror,
      frame: () => ARRAY_FRAME,
      checkFields: () => [],
      open: async (_, __, context) => {
        this.contexts.push(context);
        return this.#writer(context);
      },
    };
  }

  #writer(context: WriterContext): Writer {
    const asked =
      <T>(name: keyof Writer, usual: T) =>
      async (...args: unknown[]): Promise<T> => {
        this.calls.push({ name, args });
        const answer = this.answers[name];
        return answer === undefined ? usual : (answer(context) as T);
      };
    return {
      preflight: asked('preflight', []),
      checkEmpty: asked('checkEmpty', { kind: 'empty' }),
      init: asked('init', ACCEPTED),
      reconcileInit: asked('reconcileInit', ACCEPTED),
      attach: asked('attach', ACCEPTED),
      upsert: asked('upsert', ACCEPTED),
      remove: asked('remove', ACCEPTED),
      poll: asked('poll', ACCEPTED),
      finish: asked('finish', ACCEPTED),
      reconcileBatch: asked('reconcileBatch', ACCEPTED),
      reconcileFinish: asked('reconcileFinish', ACCEPTED),
      abort: asked('abort', ACCEPTED),
      close: asked('close', undefined),
    };
  }
}
