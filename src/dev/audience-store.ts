/**
 * What the demo's audience API knows, in memory and in one JSON file. The file is replaced whole, never written in place,
 * so that a killed process leaves the old one or the new one.
 */

import { open, readFile, rename } from 'node:fs/promises';
import { z } from 'zod';

const File = z.object({
  audiences: z.record(z.string(), z.record(z.string(), z.unknown())),
  replies: z.array(z.tuple([z.string(), z.unknown()])),
});

/** Replies that are remembered by their idempotency key, the newest ones. */
const MAX_REPLIES = 10_000;

export class AudienceStore {
  readonly #file: string;
  readonly #audiences: Map<string, Map<string, unknown>>;
  readonly #replies: Map<string, unknown>;
  #changes = 0;
  #saved = 0;
  #saving: Promise<void> | null = null;

  private constructor(file: string, content: z.output<typeof File>) {
    this.#file = file;
    this.#audiences = new Map(
      Object.entries(content.audiences).map(([id, members]) => [id, new Map(Object.entries(members))]),
    );
    this.#replies = new Map(content.replies);
  }

  /** @throws Error where the file is there and is not one of this program's. */
  static async open(file: string): Promise<AudienceStore> {
    const text = await readFile(file, 'utf8').catch((error: unknown) => {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw error;
    });
    return new AudienceStore(
      file,
      text === null ? { audiences: {}, replies: [] } : File.parse(JSON.parse(text)),
    );
  }

  count(audience: string): number {
    return this.#audiences.get(audience)?.size ?? 0;
  }

  /** By id, in the order of the ids. */
  members(audience: string): readonly (readonly [string, unknown])[] {
    return [...(this.#audiences.get(audience) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  put(audience: string, id: string, member: unknown): void {
    const members = this.#audiences.get(audience) ?? new Map<string, unknown>();
    this.#audiences.set(audience, members.set(id, member));
    this.#changes += 1;
  }

  remove(audience: string, id: string): void {
    if (this.#audiences.get(audience)?.delete(id) === true) this.#changes += 1;
  }

  replyTo(key: string): unknown {
    return this.#replies.get(key);
  }

  remember(key: string, reply: unknown): void {
    this.#replies.set(key, reply);
    const [oldest] = this.#replies.keys();
    if (this.#replies.size > MAX_REPLIES && oldest !== undefined) this.#replies.delete(oldest);
    this.#changes += 1;
  }

  /** Resolves when all changes made so far are on disk; waiting callers share one write. */
  async saved(): Promise<void> {
    const wanted = this.#changes;
    while (this.#saved < wanted) {
      this.#saving ??= this.#save().finally(() => {
        this.#saving = null;
      });
      await this.#saving;
    }
  }

  async #save(): Promise<void> {
    const changes = this.#changes;
    const audiences = Object.fromEntries(
      [...this.#audiences].map(([id, members]) => [id, Object.fromEntries(members)]),
    );
    const text = JSON.stringify({ audiences, replies: [...this.#replies] });
    const next = `${this.#file}.next`;
    const handle = await open(next, 'w', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(next, this.#file);
    this.#saved = changes;
  }
}
