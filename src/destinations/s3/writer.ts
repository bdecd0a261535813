/** The writer of one attempt: the bucket, the fence in its manifest, and the folder of the run's parts. */

import type {
  BatchOutcome,
  BatchRequest,
  EmptyCheck,
  FinishRequest,
  PreflightProblem,
  StepOutcome,
  Tidied,
  Writer,
  WriterContext,
} from '../port.ts';
import type { Bucket } from './bucket.ts';
import { Fence } from './fence.ts';
import { publish } from './finish.ts';
import { Layout, type Retention } from './manifest.ts';
import { folderOf, type S3Options } from './options.ts';
import { encodePart, holdsRequest, partReceipt } from './part.ts';
import { storeProblems } from './preflight.ts';
import { emptyFolder, tidyStep } from './tidy.ts';

export class S3Writer implements Writer {
  readonly #bucket: Bucket;
  readonly #options: S3Options;
  readonly #context: WriterContext;
  readonly #layout: Layout;
  readonly #fence: Fence;
  readonly #retention: Retention;

  constructor(
    bucket: Bucket,
    options: S3Options,
    context: WriterContext,
    private readonly longestCallMs: number,
  ) {
    this.#bucket = bucket;
    this.#options = options;
    this.#context = context;
    this.#layout = new Layout(folderOf(options), context.owner);
    this.#fence = new Fence(bucket, this.#layout, context);
    this.#retention = { sets: options.keep_superseded, ms: options.keep_superseded_ms };
  }

  preflight(): Promise<readonly PreflightProblem[]> {
    return storeProblems(this.#bucket, this.#layout, this.#fence, this.#context.owner);
  }

  async checkEmpty(): Promise<EmptyCheck> {
    const seen = await this.#fence.look();
    switch (seen.kind) {
      case 'absent':
        return { kind: 'empty' };
      case 'found':
        return { kind: seen.manifest.published === null ? 'empty' : 'not-empty' };
      case 'misconfigured':
        return { kind: 'misconfigured', code: seen.code };
      default:
        return { kind: 'failed', code: seen.code };
    }
  }

  init(): Promise<StepOutcome> {
    return this.#take(true);
  }

  /** The session is the fence alone, and taking it twice equals taking it once. */
  reconcileInit(): Promise<StepOutcome> {
    return this.#take(true);
  }

  attach(): Promise<StepOutcome> {
    return this.#take(false);
  }

  /** A part is immutable and counts for nothing before a manifest names it, so that no fence need be asked. */
  async upsert(request: BatchRequest): Promise<BatchOutcome> {
    const { gzip } = this.#options;
    const part = await encodePart(request, gzip);
    const key = `${this.#layout.parts}${this.#folder}/${part.name}`;
    const done = await this.#bucket.put(key, part.body, part.contentType, 'absent');
    switch (done.kind) {
      case 'stored':
        return {
          kind: 'accepted',
          receipt: partReceipt(key, request.operations.length, part.body, done.etag),
        };
      case 'precondition':
        return this.#compare(key, request);
      default:
        return done;
    }
  }

  async remove(): Promise<BatchOutcome> {
    const reason = 'A set of objects is replaced as a whole; single members are never removed.';
    return { kind: 'refused', code: 'removals-refused', reason };
  }

  /** Nothing is ever staged. */
  async poll(): Promise<BatchOutcome> {
    return { kind: 'unknown', code: 'never-staged' };
  }

  async finish(request: FinishRequest): Promise<StepOutcome> {
    const until = this.#context.now() + this.longestCallMs;
    return publish(
      {
        bucket: this.#bucket,
        fence: this.#fence,
        layout: this.#layout,
        retention: this.#retention,
        run: this.#run,
        gzip: this.#options.gzip,
        now: () => this.#context.now(),
        tooLate: () => this.#context.now() >= until,
      },
      request,
    );
  }

  /** The same part again: the store refuses it where it has it, and what it has is compared. */
  reconcileBatch(request: BatchRequest): Promise<BatchOutcome> {
    return request.action === 'upsert' ? this.upsert(request) : this.remove();
  }

  /** The manifest tells by its finish id; where it does not, taking the fence has shut out the one that was lost. */
  reconcileFinish(request: FinishRequest): Promise<StepOutcome> {
    return this.finish(request);
  }

  /** Shuts out whatever of this run is still under way, then takes its parts away. */
  async abort(): Promise<StepOutcome> {
    const held = await this.#fence.take(false);
    // Without a manifest nothing of the run can become visible any more.
    if (held.kind !== 'held' && !(held.kind === 'misconfigured' && held.code === 'fence-not-taken')) {
      return held;
    }
    const shown = held.kind === 'held' ? held.manifest.published?.folder : undefined;
    if (shown === this.#folder) return { kind: 'accepted', receipt: { kept: 'published' } };
    for (;;) {
      const emptied = await emptyFolder(this.#bucket, this.#layout, this.#folder);
      if (emptied.kind === 'empty') return { kind: 'accepted', receipt: {} };
      if (emptied.kind !== 'more') return emptied;
    }
  }

  async tidy(): Promise<Tidied> {
    const seen = await this.#fence.look();
    if (seen.kind === 'absent') return { kind: 'done' };
    if (seen.kind !== 'found') return { kind: 'failed', code: seen.code };
    if (seen.manifest.writer.owner !== this.#context.owner) return { kind: 'done' };
    const [bucket, layout, retention] = [this.#bucket, this.#layout, this.#retention];
    return tidyStep({ bucket, layout, retention, now: () => this.#context.now() }, seen.manifest);
  }

  async close(): Promise<void> {
    this.#bucket.close();
  }

  async #take(mayBegin: boolean): Promise<StepOutcome> {
    const held = await this.#fence.take(mayBegin);
    if (held.kind !== 'held') return held;
    return { kind: 'accepted', receipt: { epoch: String(this.#context.epoch) } };
  }

  async #compare(key: string, request: BatchRequest): Promise<BatchOutcome> {
    const stored = await this.#bucket.get(key);
    switch (stored.kind) {
      case 'found':
        if (await holdsRequest(stored.body, request, this.#options.gzip)) {
          return {
            kind: 'accepted',
            receipt: partReceipt(key, request.operations.length, stored.body, stored.etag),
          };
        }
        return {
          kind: 'misconfigured',
          code: 'part-differs',
          reason: 'Another object has the key of this part: something else writes below the prefix.',
        };
      case 'absent':
        return { kind: 'not-applied', code: 'part-vanished', retryAfterMs: null, tooLarge: false };
      case 'misconfigured':
        return stored;
      default:
        return { kind: 'unknown', code: stored.code };
    }
  }

  get #run(): string {
    if (this.#context.run === undefined) throw new Error('what is written belongs to a run');
    return this.#context.run;
  }

  get #folder(): string {
    return this.#layout.folderOf(this.#run);
  }
}
