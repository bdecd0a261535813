/** What a reply's body says, as far as it can be read without guessing. */

import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import { MAX_REPLY_BYTES, type Reply } from './web-transport.ts';

export type ReplyContent =
  | { readonly kind: 'empty' }
  | { readonly kind: 'json'; readonly value: unknown; readonly text: string }
  /** Plain text that does not claim to be JSON. */
  | { readonly kind: 'text'; readonly text: string }
  /** Cut, undecodable, malformed, or a page for people. `text`: what can be shown of it. */
  | { readonly kind: 'unreadable'; readonly code: string; readonly text: string };

/** Reads a body whole. A page of HTML never answers a write: a proxy or a login form does. */
export function readContent(reply: Reply): ReplyContent {
  const bytes = plainBytes(reply);
  if (bytes === null) return { kind: 'unreadable', code: 'reply-undecodable', text: '' };
  const text = decode(bytes, charsetOf(reply));
  if (reply.cut !== null) return { kind: 'unreadable', code: reply.cut, text: text ?? looseText(bytes) };
  if (bytes.length === 0) return emptyContent(reply);
  if (text === null) return { kind: 'unreadable', code: 'reply-undecodable', text: looseText(bytes) };
  const type = (reply.headers['content-type'] ?? '').toLowerCase();
  if (type.includes('html')) return { kind: 'unreadable', code: 'reply-is-a-page', text };
  try {
    return { kind: 'json', value: JSON.parse(text), text };
  } catch {
    if (/json/.test(type) || /^\s*[[{<]/.test(text))
      return { kind: 'unreadable', code: 'reply-malformed', text };
    return { kind: 'text', text };
  }
}

/** Nothing, where only the connection's end says that nothing was to come, may be all that was left of something. */
function emptyContent(reply: Reply): ReplyContent {
  if (reply.framed || reply.status === 204) return { kind: 'empty' };
  return { kind: 'unreadable', code: 'reply-truncated', text: '' };
}

function plainBytes(reply: Reply): Buffer | null {
  const coding = (reply.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const options = { maxOutputLength: MAX_REPLY_BYTES };
  if (coding === 'identity' || reply.bytes.length === 0) return reply.bytes;
  try {
    if (coding === 'gzip' || coding === 'x-gzip') return gunzipSync(reply.bytes, options);
    if (coding === 'deflate') return inflateSync(reply.bytes, options);
    if (coding === 'br') return brotliDecompressSync(reply.bytes, options);
  } catch {
    return null;
  }
  return null;
}

function charsetOf(reply: Reply): string {
  return /charset\s*=\s*"?([^\s;"]+)/i.exec(reply.headers['content-type'] ?? '')?.[1] ?? 'utf-8';
}

function decode(bytes: Buffer, charset: string): string | null {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return null; // an unknown charset, or bytes that are not of it
  }
}

function looseText(bytes: Buffer): string {
  return new TextDecoder('utf-8').decode(bytes);
}
