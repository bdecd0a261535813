/** What `retl index` has done by a process of the worker's program, which alone may load the systems of indexes. */

import { z } from 'zod';
import { RetlError } from '../domain/errors.ts';
import { type ArtifactReference, sha256 } from '../domain/ids.ts';
import { INDEX_NAME } from '../domain/index-messages.ts';
import type { Invocation } from './command.ts';
import { type Project, readSettings } from './environment.ts';
import { EXIT } from './exit-codes.ts';
import { Refusal } from './failures.ts';
import { askWorker, NOTHING_CHANGED, toldError } from './worker-answers.ts';

const u64 = z.string();
const lag = z.object({ positions: u64, ms: z.number() });
const build = z.object({
  build: u64,
  state: z.enum(['live', 'building']),
  schemaVersion: z.number(),
  rows: u64,
  position: u64.nullable(),
  goal: u64.nullable(),
  checkpoint: z.string().nullable(),
  lag: lag.nullable(),
  refused: z.object(toldError).nullable(),
});

const line = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('status'),
    index: z.string(),
    head: u64,
    earliest: u64,
    builds: z.array(build),
  }),
  z.object({
    kind: z.literal('followed'),
    index: z.string(),
    end: z.enum(['caught-up', 'frozen']),
    build: u64,
    position: u64.nullable(),
    rows: u64,
  }),
  z.object({ kind: z.literal('begun'), index: z.string(), build: u64, goal: u64.nullable() }),
  z.object({
    kind: z.literal('verified'),
    index: z.string(),
    position: u64,
    rows: u64,
    oneByOne: u64,
    boundary: u64.nullable(),
    missing: u64,
    unexpected: u64,
    counted: u64,
    artifactCount: u64.nullable(),
    astray: z.string().nullable(),
  }),
  z.object({
    kind: z.literal('audited'),
    index: z.string(),
    checkpoints: z.number(),
    faults: z.array(z.object({ position: u64, reference: z.string(), code: z.string() })),
  }),
  z.object({
    kind: z.literal('checkpoint'),
    index: z.string(),
    build: u64,
    schemaVersion: z.number(),
    position: u64,
    reference: z.string(),
    recordedAt: z.string(),
  }),
  z.object({
    kind: z.literal('forgotten'),
    index: z.string(),
    builds: z.number(),
    foreign: z.number(),
    held: u64.nullable(),
  }),
  z.object({
    kind: z.literal('shown'),
    reference: z.string(),
    checkpoint: z.record(z.string(), z.union([z.string(), z.number(), z.null()])),
  }),
  z.object({
    kind: z.literal('refused'),
    ...toldError,
  }),
]);

/** A line of domain/index-lines.ts, as JSON has it. */
export type IndexAnswer = Exclude<z.infer<typeof line>, { readonly kind: 'refused' }>;

/** What was done and found, and what was refused, in the order in which it was told. */
export interface IndexFindings {
  readonly answers: readonly IndexAnswer[];
  readonly refusals: readonly RetlError[];
}

const BEGUN = '`retl index status` shows whether the build was begun; the next call begins it anew.';

/** What each verb leaves that was stopped in the middle; one that only looks is not here. */
const LEAVES: { readonly [verb: string]: string } = {
  follow: 'What was committed stays, and the next call goes on from there.',
  rebuild: BEGUN,
  rollback: BEGUN,
  forget: 'Some of it may be gone; the next call goes on.',
};

/**
 * @throws Refusal `index-incomplete` where the process has ended before it was done, and has not said why; as {@link askWorker}
 */
export async function indexFindings(
  project: Project,
  verb: string,
  ...args: readonly string[]
): Promise<IndexFindings> {
  const answers: IndexAnswer[] = [];
  const refusals: RetlError[] = [];
  const asked = {
    args: ['--project', project.dir, '--index', verb, ...args],
    leaves: LEAVES[verb] ?? NOTHING_CHANGED,
  };
  const exit = await askWorker(asked, line, (found) => {
    if (found.kind === 'refused') refusals.push(new RetlError(found.code, found.details));
    else answers.push(found);
  });
  if (exit === EXIT.ok || refusals.length > 0) return { answers, refusals };
  throw new Refusal(
    exit,
    'index-incomplete',
    'The process that works on the index has ended before it was done.',
    'What it wrote above says why; `retl check` looks at everything it needs.',
  );
}

/** @throws RetlError as the work was refused; Refusal as {@link indexFindings} */
export async function indexWork(
  project: Project,
  verb: string,
  ...args: readonly string[]
): Promise<readonly IndexAnswer[]> {
  const { answers, refusals } = await indexFindings(project, verb, ...args);
  const [refused] = refusals;
  if (refused !== undefined) throw refused;
  return answers;
}

/** The index that the first argument names. @throws RetlError `index.unknown` */
export async function indexOf({ project, args }: Invocation): Promise<string> {
  const [name = ''] = args;
  const { indexes } = await readSettings(project);
  if (!INDEX_NAME.test(name) || !indexes.some((index) => index.name === name))
    throw new RetlError('index.unknown', { index: name.slice(0, 63) });
  return name;
}

/** The reference that an argument is. @throws Refusal `not-a-reference` */
export function referenceOf(argument: string | undefined): ArtifactReference {
  try {
    return sha256(argument ?? '');
  } catch {
    throw new Refusal(
      EXIT.usage,
      'not-a-reference',
      'A checkpoint is named by its reference: `sha256:` and 64 hexadecimal digits.',
      '`retl index checkpoints <index>` lists those of an index.',
    );
  }
}

/** Those that the arguments name, or all. */
export async function indexesOf(invocation: Invocation): Promise<readonly string[]> {
  if (invocation.args.length > 0) return [await indexOf(invocation)];
  const { indexes } = await readSettings(invocation.project);
  return indexes.map(({ name }) => name);
}
