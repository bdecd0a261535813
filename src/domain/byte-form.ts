/**
 * Parts that binary forms of design.md section 7 are made of: u32 and u64 big-endian, strings as a u32 byte length and UTF-8.
 *
 * Writer and reader go on after a fault and keep the first one, so that a form reads as the list of its fields; whoever asks
 * for the end gets the fault instead of a value. Fields are named in faults as the form's page names them.
 */

/** Why a value has no bytes in the form. */
export interface WriteFault {
  readonly reason: 'out-of-range' | 'lone-surrogate' | 'string-too-long';
  readonly field: string;
}

/** Why bytes are no value of the form. `offset`: of the first byte of what is at fault, from 0. */
export type ReadFault =
  /** The bytes end inside a field; `needed` more bytes than there are. */
  | {
      readonly reason: 'missing-bytes';
      readonly field: string;
      readonly offset: number;
      readonly needed: number;
    }
  /** Bytes follow the last field. */
  | { readonly reason: 'trailing-bytes'; readonly offset: number; readonly bytes: number }
  | {
      readonly reason: 'string-too-long';
      readonly field: string;
      readonly offset: number;
      readonly bytes: number;
    }
  | { readonly reason: 'invalid-utf8'; readonly field: string; readonly offset: number };

export const MAX_U32 = 2 ** 32 - 1;
export const MAX_U64 = 2n ** 64n - 1n;

export class ByteWriter {
  readonly #parts: Uint8Array[] = [];
  #fault: WriteFault | null = null;

  u32(field: string, value: number): void {
    if (!Number.isInteger(value) || value < 0 || value > MAX_U32) {
      this.#fail('out-of-range', field);
    } else {
      this.#view(4).setUint32(0, value);
    }
  }

  u64(field: string, value: bigint): void {
    if (value < 0n || value > MAX_U64) {
      this.#fail('out-of-range', field);
    } else {
      this.#view(8).setBigUint64(0, value);
    }
  }

  /** @param most bytes of UTF-8 that the form allows. */
  string(field: string, value: string, most: number): void {
    const bytes = new TextEncoder().encode(value);
    if (!value.isWellFormed()) {
      // The encoder has written U+FFFD for the lone surrogate: another value.
      this.#fail('lone-surrogate', field);
    } else if (bytes.length > most) {
      this.#fail('string-too-long', field);
    } else {
      this.u32(field, bytes.length);
      this.#parts.push(bytes);
    }
  }

  end():
    | { readonly kind: 'written'; readonly bytes: Uint8Array }
    | { readonly kind: 'refused'; readonly fault: WriteFault } {
    if (this.#fault !== null) return { kind: 'refused', fault: this.#fault };
    return { kind: 'written', bytes: concatBytes(this.#parts) };
  }

  /** The next bytes, to be filled. */
  #view(bytes: number): DataView {
    const part = new Uint8Array(bytes);
    this.#parts.push(part);
    return new DataView(part.buffer);
  }

  #fail(reason: WriteFault['reason'], field: string): void {
    this.#fault ??= { reason, field };
  }
}

export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #offset = 0;
  #fault: ReadFault | null = null;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** 0 after a fault. */
  u32(field: string): number {
    const at = this.#take(field, 4);
    return at === null ? 0 : this.#view.getUint32(at);
  }

  /** 0 after a fault. */
  u64(field: string): bigint {
    const at = this.#take(field, 8);
    return at === null ? 0n : this.#view.getBigUint64(at);
  }

  /** Empty after a fault. @param most bytes of UTF-8 that the form allows. */
  string(field: string, most: number): string {
    const start = this.#offset;
    const length = this.u32(field);
    if (length > most) this.#fault ??= { reason: 'string-too-long', field, offset: start, bytes: length };
    const at = this.#take(field, length);
    if (at === null) return '';
    try {
      // ignoreBOM keeps a leading U+FEFF, which belongs to the value.
      const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
      return decoder.decode(this.#bytes.subarray(at, at + length));
    } catch {
      this.#fault ??= { reason: 'invalid-utf8', field, offset: at };
      return '';
    }
  }

  /** The first fault so far: for a form that can go on only after a sound field. */
  get fault(): ReadFault | null {
    return this.#fault;
  }

  /** The first fault; bytes that are left over are one. `null`: the form was whole. */
  end(): ReadFault | null {
    const left = this.#bytes.length - this.#offset;
    if (this.#fault === null && left > 0)
      this.#fault = { reason: 'trailing-bytes', offset: this.#offset, bytes: left };
    return this.#fault;
  }

  #take(field: string, bytes: number): number | null {
    if (this.#fault !== null) return null;
    const offset = this.#offset;
    const needed = offset + bytes - this.#bytes.length;
    if (needed > 0) {
      this.#fault = { reason: 'missing-bytes', field, offset, needed };
      return null;
    }
    this.#offset += bytes;
    return offset;
  }
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
