/**
 * Conformance checks of native replacement (design.md section 4): each run uploads the whole set, the finish makes it the one
 * that is held, and nothing else does.
 */

import type { Member } from '../domain/member.ts';
import type { ConformanceCheck } from './conformance-harness.ts';
import { type ConformanceSession, demand } from './conformance-session.ts';
import type { StepFound, Writer } from './port.ts';

type Session<C, O> = ConformanceSession<C, O>;

/** No target tidies for ever what a few runs have left. */
const MOST_TIDY_STEPS = 50;

export function replaceChecks<C, O>(session: Session<C, O>): readonly ConformanceCheck[] {
  const { strategies, visible } = session.capabilities;
  if (!strategies.includes('native-replace')) return [];
  const checks: ConformanceCheck[] = [
    {
      name: 'replace: the uploaded set is held, and nothing of the former one',
      run: () => replaces(session),
    },
    { name: 'replace: an empty set replaces the former one', run: () => empties(session) },
    { name: 'rule 10: replace: the same finish twice equals once', run: () => finishesTwice(session) },
    { name: 'rule 1: replace: a removal is refused', run: () => refusesRemoval(session) },
    { name: 'replace: a run after an aborted one replaces the set', run: () => goesOnAfterAbort(session) },
    {
      name: 'replace: an upload that a person has vouched for counts as the target holds it',
      run: () => findsVouched(session),
    },
    { name: 'rule 9: replace: an older attempt can no longer finish', run: () => fencesOlder(session) },
    { name: 'replace: tidying comes to an end and leaves the set as it is', run: () => tidies(session) },
  ];
  if (visible === 'at_finish')
    checks.push(
      { name: 'replace: uploads show nothing before the finish', run: () => showsNothingEarly(session) },
      {
        name: 'replace: a finish of less than the sealed set is refused and shows nothing',
        run: () => refusesPartialSet(session),
      },
      {
        name: 'replace: a finish is refused where a person has vouched for an upload that is not there',
        run: () => refusesAbsentUpload(session),
      },
    );
  if (session.can('finish-lost'))
    checks.push({
      name: 'rule 10: replace: a finish whose answer was lost is found to have happened, by a newer attempt',
      run: () => findsLostFinish(session),
    });
  return checks;
}

async function replaces<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const three = session.rows + 2;
  await replace(session, session.members(three, 1));
  await session.demandHeld(session.members(three, 1));
  // One unchanged, the others changed; the rest is gone.
  const next = [...session.members(1, 1), ...session.members(session.rows, 2).slice(1)];
  await replace(session, next);
  await session.demandHeld(next);
}

async function empties<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  await replace(session, session.members());
  await replace(session, []);
  await session.demandHeld([]);
}

async function finishesTwice<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members();
  await inRun(session, null, async (writer) => {
    await session.fill(writer, members);
    const request = session.finish(members.length);
    demandStep(session, 'the finish', await writer.finish(request));
    demandStep(session, 'the finish, asked about', await writer.reconcileFinish(request, null));
  });
  await session.demandHeld(members);
}

async function refusesRemoval<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members();
  await replace(session, members);
  await inRun(session, null, async (writer) => {
    const outcome = await writer.remove(session.request('remove', members));
    demand(outcome.kind === 'refused', `a removal to be refused, and not ${outcome.kind}`);
  });
  await session.demandHeld(members);
}

async function goesOnAfterAbort<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members(session.rows, 1);
  await replace(session, members);
  await inRun(session, null, async (writer, run) => {
    await session.fill(writer, session.members(session.rows, 2));
    // As the core does: by an attempt of its own that has joined no session.
    await session.withAttempt(run, async (other) => {
      demandStep(session, 'the abort', await other.abort());
      demandStep(session, 'the abort, repeated', await other.abort());
    });
  });
  if (session.capabilities.visible === 'at_finish') await session.demandHeld(members);
  const next = session.members(session.rows, 3);
  await replace(session, next);
  await session.demandHeld(next);
}

async function fencesOlder<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members();
  await inRun(session, null, async (old, run) => {
    await session.fill(old, members);
    const request = session.finish(members.length);
    await inRun(session, run, async (young) => {
      const late = await old.finish(request);
      demand(late.kind === 'misconfigured', `an older attempt to be shut out, and not ${late.kind}`);
      session.demandClean(late);
      if (session.capabilities.visible === 'at_finish') await session.demandHeld([]);
      demandStep(session, 'the finish', await young.finish(request));
    });
  });
  await session.demandHeld(members);
}

async function tidies<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  for (const variant of [1, 2, 3]) await replace(session, session.members(session.rows, variant));
  await inRun(session, null, async (writer) => {
    for (let steps = 0; steps < MOST_TIDY_STEPS; steps++) {
      const tidied = (await writer.tidy?.()) ?? { kind: 'done' };
      demand(tidied.kind !== 'failed', 'a reachable target to be tidied');
      if (tidied.kind === 'done') return;
    }
    demand(false, `tidying to end within ${MOST_TIDY_STEPS} steps`);
  });
  await session.demandHeld(session.members(session.rows, 3));
}

async function showsNothingEarly<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members(session.rows, 1);
  await replace(session, members);
  await inRun(session, null, async (writer) => {
    await session.fill(writer, session.members(session.rows + 1, 2));
    await session.demandHeld(members);
  });
}

async function refusesPartialSet<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members(session.rows, 1);
  await replace(session, members);
  await inRun(session, null, async (writer) => {
    await session.fill(writer, session.members(session.rows, 2));
    const outcome = await writer.finish(session.finish(session.rows + 1));
    demand(
      outcome.kind === 'refused',
      `a finish that does not add up to be refused, and not ${outcome.kind}`,
    );
  });
  await session.demandHeld(members);
}

async function findsVouched<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members();
  await inRun(session, null, async (writer) => {
    const request = session.request('upsert', members);
    session.demandAccepted(await session.deliver(writer, request), request);
    session.vouch(request);
    demandStep(session, 'the finish', await writer.finish(session.finish(members.length)));
  });
  await session.demandHeld(members);
}

async function refusesAbsentUpload<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members(session.rows, 1);
  await replace(session, members);
  await inRun(session, null, async (writer) => {
    const request = session.request('upsert', session.members(session.rows, 2));
    session.vouch(request);
    const outcome = await writer.finish(session.finish(request.operations.length));
    demand(outcome.kind === 'refused', `a finish without its upload to be refused, and not ${outcome.kind}`);
  });
  await session.demandHeld(members);
}

async function findsLostFinish<C, O>(session: Session<C, O>): Promise<void> {
  await begin(session);
  const members = session.members();
  await inRun(session, null, async (writer, run) => {
    await session.fill(writer, members);
    const request = session.finish(members.length);
    await session.arm('finish-lost');
    const outcome = await writer.finish(request);
    demand(outcome.kind === 'unknown', `unknown, and not ${outcome.kind}`);
    await inRun(session, run, async (young) => {
      demandStep(session, 'the finish, asked about', await young.reconcileFinish(request, null));
    });
  });
  await session.demandHeld(members);
}

/** Makes the target new. */
function begin<C, O>(session: Session<C, O>): Promise<void> {
  return session.withWriter(async () => undefined);
}

/** A whole run. */
function replace<C, O>(session: Session<C, O>, members: readonly Member[]): Promise<void> {
  return inRun(session, null, async (writer) => {
    await session.fill(writer, members);
    demandStep(session, 'the finish', await writer.finish(session.finish(members.length)));
  });
}

/** A new run with its session open, or a newer attempt of one. */
function inRun<C, O>(
  session: Session<C, O>,
  run: string | null,
  body: (writer: Writer, run: string) => Promise<void>,
): Promise<void> {
  return session.withAttempt(run, async (writer, name) => {
    const opened = await writer.init();
    demandStep(session, 'init', opened);
    if (opened.kind === 'accepted') demandStep(session, 'attach', await writer.attach(opened.receipt));
    await body(writer, name);
  });
}

function demandStep<C, O>(session: Session<C, O>, what: string, outcome: StepFound): void {
  demand(outcome.kind === 'accepted', `${what} to be accepted, and not ${outcome.kind}`);
  session.demandClean(outcome);
}
