/**
 * What becomes of an index, as its workflow says: it follows the log, waits, or does not run. How far the index is stands in
 * the index itself and is told without Temporal, so that whoever does not answer here in time only leaves this unknown.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import type { TemporalClient } from '../client/connect.ts';
import { ERROR_CODES, isErrorCode, RetlError } from '../domain/errors.ts';
import type { IndexProgress } from '../domain/index-messages.ts';
import type { Project } from './environment.ts';
import { EXIT, type ExitCode, exitOfError } from './exit-codes.ts';
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
function onlyUnknown(error: unknown): IndexWorkflow {
  if (!(error instanceof RetlError)) throw error;
  return UNKNOWN;
}

const ASK_AGAIN_MS = 200;

/**
 * What a workflow does that was started or told something just now. While it looks at its index it may still come to be
 * refused: that is waited for, but not for long.
 */
export async function workflowAfter(temporal: TemporalClient, index: string): Promise<IndexWorkflow> {
  const { indexProgress } = await import('../client/indexes.ts');
  const until = Date.now() + LOOK_WITHIN_MS;
  try {
    for (;;) {
      const seen = await indexProgress(temporal, index, LOOK_WITHIN_MS);
      const isLooking = seen.kind === 'running' && seen.progress.looking;
      if (!isLooking || Date.now() >= until) return workflowOf(index, seen, temporal.taskQueue);
      await sleep(ASK_AGAIN_MS);
    }
  } catch (error) {
    return onlyUnknown(error);
  }
}

/** Has the workflow look at once, where it runs, and says what it does then. */
export async function wakened(project: Project, index: string): Promise<IndexWorkflow> {
  const { signalIndex } = await import('../client/indexes.ts');
  const told = lookAtTemporal(project, async (temporal) => {
    await signalIndex(temporal, index, 'wake');
    return workflowAfter(temporal, index);
  });
  return told.catch(onlyUnknown);
}

const AT_WORK: ReadonlySet<IndexWorkflow['state']> = new Set([
  'replaying',
  'caught-up',
  'frozen',
  'unavailable',
]);

/** Whether it does what there is to do, or tries to, without anybody's help. */
export function isAtWork({ state }: IndexWorkflow): boolean {
  return AT_WORK.has(state);
}

/** Of a command that would have an index follow the log: as `--once` leaves, where it is refused. */
export function exitOfWorkflow({ state, code }: IndexWorkflow): ExitCode {
  if (state === 'paused' || state === 'not-running' || state === 'stopped') return EXIT.refused;
  if (state !== 'refused') return EXIT.ok;
  return isErrorCode(code) ? exitOfError(code) : EXIT.failure;
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

function codeInfo(code: string | null): { readonly meaning: string; readonly remedy: string } | null {
  return isErrorCode(code) ? ERROR_CODES[code] : null;
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
