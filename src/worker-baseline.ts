/** The process that sees to baselines: it does one order, and tells what came of it as JSON lines, for the CLI. */

import { adoptListing, inspectListing } from './activities/adopt-baseline.ts';
import { attestable, attestBaseline } from './activities/attest-baseline.ts';
import { importBaseline, inspectBaseline } from './activities/import-baseline.ts';
import { verifyBaseline } from './activities/verify-baseline.ts';
import { expectValid, loadMirror } from './config/load.ts';
import { secretsOf } from './config/secrets.ts';
import { assertNever } from './domain/assert-never.ts';
import type { BaselineLine, BaselineOrder } from './domain/baseline.ts';
import { RetlError } from './domain/errors.ts';
import type { JournalSettings, MirrorSettings } from './domain/settings.ts';
import type { JournalPool } from './journal/runs.ts';
import { rightToPlan, withPlanJournal } from './planning/plan-journal.ts';
import { failureOf } from './planning/tell-plan.ts';
import { withJournal } from './worker-journal.ts';
import { configurationOf, SOURCES, type WorkerSetup } from './worker-setup.ts';

/** One look at a destination. */
const LOOK_MS = 60_000;

/** @param order JSON of a {@link BaselineOrder}, as the CLI of this very release writes it. */
export async function baseline(setup: WorkerSetup, order: string): Promise<number> {
  const stop = new AbortController();
  // Told to stop, whoever reads a destination gives up at once; nothing is changed by it.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  const line = await answer(setup, JSON.parse(order) as BaselineOrder, stop.signal).catch(failureOf);
  say(stop.signal.aborted ? lineOfStopped(line) : line);
  return 0;
}

/** Of an order that was to stop: what does not heed that, or was done by then, is told as it came out. */
export function lineOfStopped(line: BaselineLine): BaselineLine {
  return line.kind === 'failed' || line.kind === 'unexpected' ? { kind: 'stopped' } : line;
}

function say(line: BaselineLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

/** Members between two signs of life. */
const PROGRESS_MEMBERS = 50_000;

/** Says, now and then, how many members there are so far. */
function progress(): (members: number) => void {
  let told = 0;
  return (rows) => {
    if (rows - told < PROGRESS_MEMBERS) return;
    told = rows;
    say({ kind: 'progress', rows });
  };
}

type Verb<V extends BaselineOrder['verb']> = Extract<BaselineOrder, { verb: V }>;

function dependencies(setup: WorkerSetup) {
  const { destinations, logger } = setup;
  return { sources: SOURCES, destinations, logger, configuration: configurationOf(setup) };
}

interface Ordered {
  readonly deps: ReturnType<typeof dependencies>;
  readonly settings: MirrorSettings;
  /** The worker's journal, closed whatever happens. */
  inJournal<T>(work: (journal: JournalPool) => Promise<T>): Promise<T>;
}

async function answer(setup: WorkerSetup, order: BaselineOrder, signal: AbortSignal): Promise<BaselineLine> {
  const deps = dependencies(setup);
  // Whoever sees to a baseline needs fewer secrets than a worker: each is looked up where it is used.
  const project = expectValid(await loadMirror(setup.projectDir, order.mirror, { ...deps }, null));
  const [settings] = project.mirrors;
  if (settings === undefined) throw new RetlError('config.unknown-mirror', { mirror: order.mirror });
  const ordered: Ordered = {
    deps,
    settings,
    inJournal: (work) => withJournal(setup.projectDir, project.journal, work),
  };
  switch (order.verb) {
    case 'import':
      return importFile(ordered, order);
    case 'attest':
      return attest(ordered, order);
    case 'verify':
      return verify(setup, ordered, project.journal, order, signal);
    case 'adopt':
      return adopt(ordered, order, signal);
    default:
      return assertNever(order);
  }
}

async function importFile(
  { deps, settings, inJournal }: Ordered,
  order: Verb<'import'>,
): Promise<BaselineLine> {
  const { path, isMapped, confirmed } = order;
  const file = { path, isMapped };
  if (confirmed === null) return { kind: 'summary', summary: await inspectBaseline(deps, settings, file) };
  const members = await inJournal((journal) =>
    importBaseline(deps, journal, settings, { ...file, ...confirmed }),
  );
  return { kind: 'imported', members };
}

async function attest(
  { deps, settings, inJournal }: Ordered,
  { confirmed }: Verb<'attest'>,
): Promise<BaselineLine> {
  const targetKey = await attestable(deps, settings, AbortSignal.timeout(LOOK_MS));
  if (confirmed === null) return { kind: 'attestable', targetKey };
  // What a person has looked at is one target; references may lead to another one by now.
  if (confirmed.targetKey !== targetKey)
    throw new RetlError('run.baseline-moved', { mirror: settings.mirror });
  await inJournal((journal) => attestBaseline(journal, settings.mirror, targetKey, confirmed));
  return { kind: 'attested' };
}

/** As the person who looks, like a plan. */
async function verify(
  { projectDir }: WorkerSetup,
  { deps, settings }: Ordered,
  journal: JournalSettings,
  { identities }: Verb<'verify'>,
  signal: AbortSignal,
): Promise<BaselineLine> {
  return withPlanJournal(journal, secretsOf(projectDir), async (pool) => {
    const right = await rightToPlan(pool, identities !== null);
    if (right !== 'granted') return { kind: 'refused', code: right };
    const options = { identities, signal, onProgress: progress() };
    return { kind: 'verified', verification: await verifyBaseline(deps, pool, settings, options) };
  });
}

async function adopt(
  { deps, settings, inJournal }: Ordered,
  { confirmed }: Verb<'adopt'>,
  signal: AbortSignal,
): Promise<BaselineLine> {
  const options = { signal, onProgress: progress() };
  if (confirmed === null) return { kind: 'summary', summary: await inspectListing(deps, settings, options) };
  const members = await inJournal((journal) => adoptListing(deps, journal, settings, confirmed, options));
  return { kind: 'imported', members };
}
