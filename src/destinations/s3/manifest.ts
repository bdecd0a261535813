/**
 * The one object that readers follow. It names the parts of the newest finished set, and who may write the next one: the
 * store compares its ETag with every conditional write, so that the fence and what it guards are one object (rule 9).
 */

import { createHash } from 'node:crypto';
import { z } from 'zod';

const hash = z.string().regex(/^sha256:[0-9a-f]{64}$/);
const count = z.int().min(0);
const decimal = z.string().regex(/^[1-9]\d*$/);

const partSchema = z.object({
  /** Full key in the bucket. */
  key: z.string(),
  members: count,
  /** Size of the object, and the SHA-256 of it as it is stored. */
  bytes: count,
  sha256: hash,
});

const publishedSchema = z.object({
  generation: z.string(),
  /** Folder of the parts, below `parts/`. */
  folder: z.string(),
  digest: z.string(),
  members: count,
  /** Id of the finish that published it. */
  finish: z.string(),
  publishedAt: z.string(),
  compression: z.enum(['none', 'gzip']),
  parts: z.array(partSchema),
});

const manifestSchema = z.object({
  format: z.literal('retl-mirror/1'),
  /** `null` before the first finish: nothing has been published yet. */
  published: publishedSchema.nullable(),
  /** Sets that were published before and may still be read, the newest first. */
  superseded: z.array(z.object({ folder: z.string(), generation: z.string(), supersededAt: z.string() })),
  writer: z.object({ owner: z.string(), epoch: decimal }),
});

export type Part = z.infer<typeof partSchema>;
export type Published = z.infer<typeof publishedSchema>;
export type Manifest = z.infer<typeof manifestSchema>;

export function manifestBytes(manifest: Manifest): Buffer {
  return Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`);
}

/** `null` where the object is no manifest of this form. */
export function readManifest(body: Buffer): Manifest | null {
  try {
    return manifestSchema.parse(JSON.parse(body.toString('utf8')));
  } catch {
    return null;
  }
}

/** The mirror's manifest before its first finish. */
export function emptyManifest(writer: Manifest['writer']): Manifest {
  return { format: 'retl-mirror/1', published: null, superseded: [], writer };
}

export interface Retention {
  /** Superseded sets that are kept besides the current one. */
  readonly sets: number;
  /** How long one is kept at least, in ms. */
  readonly ms: number;
}

/** The manifest after a finish; what it no longer names may go. `now` in ms since the epoch. */
export function supersede(before: Manifest, next: Published, retention: Retention, now: number): Manifest {
  const { published } = before;
  const last =
    published === null
      ? []
      : [
          {
            folder: published.folder,
            generation: published.generation,
            supersededAt: new Date(now).toISOString(),
          },
        ];
  const superseded = [...last, ...before.superseded].filter(
    (set, index) => index < retention.sets || isYoung(set, retention, now),
  );
  return { ...before, published: next, superseded };
}

/** Folders whose parts a reader may still be reading. */
export function foldersInUse(manifest: Manifest, retention: Retention, now: number): ReadonlySet<string> {
  const kept = manifest.superseded.filter(
    (set, index) => index < retention.sets || isYoung(set, retention, now),
  );
  return new Set([
    ...(manifest.published === null ? [] : [manifest.published.folder]),
    ...kept.map(({ folder }) => folder),
  ]);
}

function isYoung(set: { readonly supersededAt: string }, { ms }: Retention, now: number): boolean {
  return now - Date.parse(set.supersededAt) < ms;
}

/** Names and places of a mirror's objects in its bucket. */
export class Layout {
  /** `root` is the mirror's folder with its slash, or empty. */
  constructor(
    readonly root: string,
    owner: string,
  ) {
    this.tag = createHash('sha256').update(owner).digest('hex').slice(0, 12);
  }

  /** Tells journals and mirrors apart, whose runs may have one number. */
  private readonly tag: string;

  get manifest(): string {
    return `${this.root}manifest.json`;
  }

  get parts(): string {
    return `${this.root}parts/`;
  }

  /** Folder of a run's parts, below `parts/`. */
  folderOf(run: string): string {
    return `${this.tag}-${run}`;
  }

  /** Run of a folder of this owner; `null`: another's, or no such folder. */
  runOf(folder: string): bigint | null {
    const [tag, run = ''] = folder.split('-', 2);
    return tag === this.tag && /^[1-9]\d*$/.test(run) ? BigInt(run) : null;
  }
}
