/** The lines of a text file, with what proves that it is the same file when it is read again. */

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { RetlError } from '../domain/errors.ts';

/** Characters of one line: far above what a row of members can need. */
const LONGEST_LINE = 4_000_000;

export interface FileLines {
  /** Without their line ends; a last empty line is none. @throws RetlError `data.baseline-file` */
  lines(): AsyncIterable<string>;
  /** SHA-256 of the bytes read so far, in hex; of the whole file once the lines have ended. */
  digest(): string;
}

/** Opens a file of UTF-8 text; a byte order mark is passed over. */
export function fileLines(path: string): FileLines {
  const hash = createHash('sha256');
  return {
    lines: () => split(decoded(path, (chunk) => hash.update(chunk))),
    digest: () => hash.digest('hex'),
  };
}

async function* decoded(path: string, seen: (chunk: Buffer) => void): AsyncGenerator<string, void> {
  // Bytes that are no text would become another text, and that another member.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const text = (chunk?: Buffer) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw new RetlError('data.baseline-file', { rule: 'not-utf8' });
    }
  };
  for await (const chunk of bytes(path)) {
    seen(chunk);
    yield text(chunk);
  }
  yield text();
}

async function* bytes(path: string): AsyncGenerator<Buffer, void> {
  try {
    for await (const chunk of createReadStream(path)) yield chunk as Buffer;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    throw new RetlError('data.baseline-file', { rule: 'unreadable', reason: code });
  }
}

async function* split(texts: AsyncIterable<string>): AsyncGenerator<string, void> {
  let rest = '';
  for await (const text of texts) {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > LONGEST_LINE) throw new RetlError('data.baseline-file', { rule: 'line-too-long' });
    yield* lines;
  }
  if (rest !== '') yield rest;
}
