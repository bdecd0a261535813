/**
 * Rows in COPY's binary form (PostgreSQL's manual, COPY, "Binary Format"): integers big-endian, each field after its length. It
 * takes the server half as long to load as the text form does, and hashes need not be written out.
 */

/** Enough for the socket to be kept busy. */
const CHUNK = 262_144;
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const TEXT_OID = 25;
/** Microseconds from 1970 to 2000, with which the server's clock begins. */
const EPOCH = 946_684_800_000_000n;

export class BinaryRows {
  #chunk = Buffer.allocUnsafe(2 * CHUNK);
  #at = HEADER.copy(this.#chunk);

  /** Begins a row, of `fields` fields. */
  row(fields: number): void {
    this.#room(2);
    this.#at = this.#chunk.writeInt16BE(fields, this.#at);
  }

  /** Fields as {@link fixedFields} has made them. */
  fixed(made: Buffer): void {
    this.#room(made.length);
    this.#at += made.copy(this.#chunk, this.#at);
  }

  bytes(from: Buffer, start: number, end: number): void {
    this.#length(end - start);
    this.#at += from.copy(this.#chunk, this.#at, start, end);
  }

  text(value: string): void {
    this.#room(4 + 3 * value.length);
    const written = this.#chunk.write(value, this.#at + 4, 'utf8');
    this.#at = this.#chunk.writeInt32BE(written, this.#at) + written;
  }

  nothing(): void {
    this.#room(4);
    this.#at = this.#chunk.writeInt32BE(-1, this.#at);
  }

  /** An array of texts, not an empty one. */
  texts(values: readonly string[]): void {
    this.#length(0);
    const from = this.#at;
    // Dimensions, whether there are nulls, the type of the elements; of the dimension its length, and where it begins.
    for (const n of [1, 0, TEXT_OID, values.length, 1]) {
      this.#room(4);
      this.#at = this.#chunk.writeInt32BE(n, this.#at);
    }
    for (const value of values) this.text(value);
    this.#chunk.writeInt32BE(this.#at - from, from - 4);
  }

  /** What has been made so far, once there is enough of it; to be asked between rows. */
  full(): Buffer | null {
    return this.#at < CHUNK ? null : this.#take();
  }

  end(): Buffer {
    this.#room(2);
    this.#at = this.#chunk.writeInt16BE(-1, this.#at);
    return this.#take();
  }

  /** The chunk is somebody else's from now on. */
  #take(): Buffer {
    const made = this.#chunk.subarray(0, this.#at);
    this.#chunk = Buffer.allocUnsafe(2 * CHUNK);
    this.#at = 0;
    return made;
  }

  #length(bytes: number): void {
    this.#room(4 + bytes);
    this.#at = this.#chunk.writeInt32BE(bytes, this.#at);
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#chunk.length) return;
    const grown = Buffer.allocUnsafe(2 * (this.#at + bytes));
    this.#chunk.copy(grown, 0, 0, this.#at);
    this.#chunk = grown;
  }
}

/** Fields that many rows have alike: bigints, texts, and times as `{ micros }` since 1970, UTC. */
export function fixedFields(values: readonly (bigint | string | { readonly micros: bigint })[]): Buffer {
  return Buffer.concat(
    values.map((value) => {
      if (typeof value === 'string') return withLength(Buffer.from(value, 'utf8'));
      const number = Buffer.alloc(8);
      number.writeBigInt64BE(typeof value === 'bigint' ? value : value.micros - EPOCH);
      return withLength(number);
    }),
  );
}

function withLength(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
