/**
 * Loading a candidate generation by COPY BINARY, in one transaction that also creates its table: an attempt that dies
 * leaves nothing behind, and nobody can add a row afterwards (rule 8). FREEZE is what makes the index-only scans of the
 * seal and the diff possible without a VACUUM in between.
 */

import { once } from 'node:events';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { type Folding, foldingText } from '../domain/folding.ts';
import { type GenerationId, generationId } from '../domain/ids.ts';
import { journalError } from './errors.ts';
import { call, run, transaction } from './pool.ts';
import type { Attempt } from './runs.ts';

/** A member ready to be stored; hashes are 32 bytes as latin-1 text, which costs no Buffer per row. */
export interface CandidateMember {
  readonly identityHash: string;
  readonly payloadHash: string;
  /** Of the bytes that its removal will send; `null` where that is the identity hash. */
  readonly removalHash: string | null;
  readonly identity: string;
  readonly upsert: string;
  readonly remove: string | null;
}

/** How members are hashed (domain: `payloadHashInput`, `identityHashInput`). */
export interface CandidateForm {
  readonly writeForm: string;
  readonly identityFolding: readonly Folding[];
}

const PLAIN: CandidateForm = { writeForm: '', identityFolding: [] };

const KIND_EXCLUDED = 0;
const KIND_MEMBER = 1;
const FIELDS = 10;
const CHUNK = 256 * 1024;
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');

/** Takes rows and writes them into the COPY stream; `add*` fill a buffer, `drain` waits for the stream. */
export class CandidateSink {
  #buffer = Buffer.allocUnsafeSlow(CHUNK);
  #used: number;
  #rows = 0;
  #rowNo = 0;
  readonly #full: Buffer[] = [];

  constructor(private readonly stream: NodeJS.WritableStream) {
    this.#used = HEADER.copy(this.#buffer, 0);
  }

  get sourceRows(): number {
    return this.#rows;
  }

  /** Whether something waits to be handed over. */
  get full(): boolean {
    return this.#full.length > 0;
  }

  /** A row that its mapping excludes on purpose: its key is stored all the same (rule 7). */
  addExcluded(sourceKey: string): void {
    this.#rows += 1;
    this.#room(sourceKey.length * 3 + 64);
    this.#start(KIND_EXCLUDED, 0);
    this.#text(sourceKey);
    for (let i = 0; i < FIELDS - 4; i++) this.#null();
  }

  addMember(sourceKey: string, memberNo: number, m: CandidateMember): void {
    if (memberNo === 0) this.#rows += 1;
    const length = sourceKey.length + m.identity.length + m.upsert.length + (m.remove?.length ?? 0);
    this.#room(length * 3 + 200);
    this.#start(KIND_MEMBER, memberNo);
    this.#text(sourceKey);
    this.#hash(m.identityHash);
    this.#hash(m.payloadHash);
    if (m.removalHash === null) this.#null();
    else this.#hash(m.removalHash);
    this.#text(m.identity);
    this.#text(m.upsert);
    if (m.remove === null) this.#null();
    else this.#text(m.remove);
  }

  /** Hands over what is full and waits while the stream is behind: this is the back-pressure on the source. */
  async drain(): Promise<void> {
    for (const chunk of this.#full.splice(0)) {
      if (!this.stream.write(chunk)) await once(this.stream, 'drain');
    }
  }

  async end(): Promise<void> {
    this.#room(2);
    this.#used = this.#buffer.writeInt16BE(-1, this.#used);
    this.#full.push(this.#buffer.subarray(0, this.#used));
    await this.drain();
  }

  #room(bytes: number): void {
    if (this.#used + bytes <= this.#buffer.length) return;
    if (this.#used > 0) this.#full.push(this.#buffer.subarray(0, this.#used));
    this.#buffer = Buffer.allocUnsafeSlow(Math.max(CHUNK, bytes));
    this.#used = 0;
  }

  #start(kind: number, memberNo: number): void {
    const b = this.#buffer;
    let at = b.writeInt16BE(FIELDS, this.#used);
    this.#rowNo += 1;
    at = b.writeInt32BE(8, at);
    at = b.writeInt32BE(Math.floor(this.#rowNo / 2 ** 32), at);
    at = b.writeUInt32BE(this.#rowNo % 2 ** 32, at);
    at = b.writeInt32BE(2, at);
    at = b.writeInt16BE(kind, at);
    at = b.writeInt32BE(2, at);
    this.#used = b.writeInt16BE(memberNo, at);
  }

  #text(value: string): void {
    const written = this.#buffer.write(value, this.#used + 4, 'utf8');
    this.#buffer.writeInt32BE(written, this.#used);
    this.#used += 4 + written;
  }

  #hash(value: string): void {
    this.#buffer.writeInt32BE(32, this.#used);
    this.#buffer.write(value, this.#used + 4, 32, 'latin1');
    this.#used += 36;
  }

  #null(): void {
    this.#used = this.#buffer.writeInt32BE(-1, this.#used);
  }
}

export interface LoadedCandidate {
  readonly generation: GenerationId;
  readonly sourceRows: number;
}

/**
 * Creates the candidate of the attempt's run, lets `fill` load it, and commits. Whatever `fill` throws comes out
 * unchanged, and nothing is kept.
 * @param keyTypes canonical JSON array of the key columns' types.
 * @param form what the hashes of this candidate were made with, besides the texts.
 * @throws JournalError; what `fill` throws.
 */
export async function loadCandidate(
  pool: pg.Pool,
  attempt: Attempt,
  keyTypes: string,
  fill: (sink: CandidateSink) => Promise<void>,
  form: CandidateForm = PLAIN,
): Promise<LoadedCandidate> {
  return transaction(pool, (client) => loadWithin(client, attempt, keyTypes, fill, form));
}

/** The same in a transaction of the caller's. @throws JournalError; what `fill` throws. */
export async function loadWithin(
  client: pg.PoolClient,
  attempt: Attempt,
  keyTypes: string,
  fill: (sink: CandidateSink) => Promise<void>,
  form: CandidateForm = PLAIN,
): Promise<LoadedCandidate> {
  // The source sets the pace of this one statement.
  await run(client, 'set local statement_timeout = 0');
  const id = generationId(
    String(await call(client, 'retl.create_candidate($1,$2)', [attempt.run, attempt.epoch])),
  );
  const stream = client.query(copyFrom(`copy retl.generation_${id} from stdin with (format binary, freeze)`));
  const ended = new Promise<void>((resolve, reject) => {
    stream.once('finish', resolve);
    stream.once('error', reject);
  });
  // Without a listener of its own the rejection of a stream that nobody waits for yet would end the process.
  ended.catch(() => {});
  const sink = new CandidateSink(stream);
  const failed = ended.then(
    () => undefined,
    (error: unknown) => Promise.reject(journalError(error)),
  );
  failed.catch(() => {});
  const filled = (async () => {
    await fill(sink);
    await sink.end();
    stream.end();
  })();
  // A broken stream never drains: whoever fails first decides.
  await Promise.race([filled, failed]).catch((error: unknown) => {
    stream.destroy();
    throw error;
  });
  await filled;
  await failed;
  const rows = sink.sourceRows;
  const { run: runOf, epoch } = attempt;
  await call(client, 'retl.loaded($1,$2,$3,$4,$5,$6,$7)', [
    runOf,
    epoch,
    id,
    keyTypes,
    rows,
    form.writeForm,
    foldingText(form.identityFolding),
  ]);
  return { generation: id, sourceRows: rows };
}
