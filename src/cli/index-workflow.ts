/**
 * What becomes of an index, as its workflow says: it follows the log, waits, or does not run. How far the index is stands in
 * the index itself and is told without Temporal, so that whoever does not answer here in time only leaves this unknown.
 */

import { ERROR_CODES, RetlError } from '../domain/errors.ts';
import type { IndexProgress } from '../domain/index-messages.ts';
import type { Project } from './environment.ts';
import { foreignWords } from './foreign-run.ts';
import { noWorkerWords } from './no-worker.ts';
import type { Output } from './output.ts';
import { LOOK_WITHIN_MS, lookAtTemporal } from './temporal.ts';

export interface IndexWorkflow {
  /** `no-worker`: it runs, and nobody answers for it; `unknown`: Temporal cannot be asked. */
  readonly state: IndexProgress['phase'] | 'not-running' | 'other-queue' | 'no-worker' | 'unknown';
  /** Why it waits, where it was refused or something is away. */
  readonly code: string | null;
  /** What the code, or the state, means; `null` where nobody has to do anything. */
  readonly meaning: string | null;
  readonly remedy: string | null;
}

const UNKNOWN: IndexWorkflow = { state: 'unknown', code: null, meaning: null, remedy: null };

export type IndexWorkflows = (index: string) => IndexWorkflow;

/** Asks for all at once, and no longer than a few seconds. */
export async function indexWorkflows(project: Project, names: readonly string[]): Promise<IndexWorkflows> {
  const found = new Map<string, IndexWorkflow>();
  if (names.length > 0) await look(project, names, found).catch(onlyUnknown);
  return (index) => found.get(index) ?? UNKNOWN;
}

async function look(
  project: Project,
  names: readonly string[],
  found: Map<string, IndexWorkflow>,
): Promise<void> {
  const { indexProgress } = await import('../client/indexes.ts');
  await lookAtTemporal(project, async (temporal) => {
    const asked = names.map(async (index) => {
      const seen = await indexProgress(temporal, index, LOOK_WITHIN_MS);
      found.set(index, workflowOf(index, seen, temporal.taskQueue));
    });
    const done = await Promise.allSettled(asked);
    for (const one of done) if (one.status === 'rejected') throw one.reason;
  });
}

/** Temporal is away, refuses, or the reference to its address leads nowhere: what a command that needs it would say. */
function onlyUnknown(error: unknown): void {
  if (!(error instanceof RetlError)) throw error;
}

type Seen = Awaited<ReturnType<typeof import('../client/indexes.ts').indexProgress>>;

function workflowOf(index: string, seen: Seen, taskQueue: string): IndexWorkflow {
  switch (seen.kind) {
    case 'running':
      return phaseOf(index, seen.progress);
    case 'not-running':
      return {
        state: 'not-running',
        code: null,
        meaning: 'its workflow does not run',
        remedy: `\`retl index run ${index}\` has it follow the log.`,
      };
    case 'other-queue':
      return { state: 'other-queue', code: null, meaning: foreignWords(seen), remedy: null };
    case 'no-answer':
      return { state: 'no-worker', code: null, meaning: noWorkerWords(taskQueue), remedy: null };
  }
}

function phaseOf(index: string, { phase: state, code }: IndexProgress): IndexWorkflow {
  if (state === 'paused')
    return { state, code, meaning: 'paused', remedy: `\`retl index resume ${index}\` has it go on.` };
  const info = codeInfo(code);
  if (state !== 'refused')
    return { state, code, meaning: info?.meaning ?? null, remedy: info?.remedy ?? null };
  const again = `\`retl index resume ${index}\` tries again.`;
  return {
    state,
    code,
    meaning: info?.meaning ?? 'it stopped',
    remedy: info === null ? again : `${info.remedy} ${again}`,
  };
}

/** A worker of another release may have codes that this one does not know. */
function codeInfo(code: string | null): { readonly meaning: string; readonly remedy: string } | null {
  const known = Object.entries(ERROR_CODES).find(([name]) => name === code);
  return known?.[1] ?? null;
}

/** As a cell of a table. */
export function workflowWords({ state, code }: IndexWorkflow): string {
  const waits = state === 'refused' || state === 'unavailable';
  const words = state.replace('-', ' ');
  return waits && code !== null ? `${words}: ${code}` : words;
}

/** Says of each what a person has to do, in the words in which it is said elsewhere. */
export function noteWorkflows(output: Output, names: readonly string[], of: IndexWorkflows): void {
  if (names.some((index) => of(index).state === 'unknown'))
    output.note('Temporal cannot be asked: whether a workflow follows the log is not known.');
  for (const index of names) {
    const { code, meaning, remedy } = of(index);
    if (meaning === null) continue;
    output.note(`${output.style('yellow', index)}: ${code === null ? '' : `${code}: `}${meaning}`);
    if (remedy !== null) output.note(`  ${remedy}`);
  }
}
