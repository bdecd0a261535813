/** Conformance checks of a target that misbehaves: what is not proven must not be claimed. */

import type { ConformanceCheck, ConformanceFault } from './conformance-harness.ts';
import { type ConformanceSession, demand, provesNothing, rowsOf } from './conformance-session.ts';
import type { BatchOutcome } from './port.ts';

/** A writer whose abort signal is up must come back within this. */
const ABORT_LIMIT_MS = 5_000;

export function faultChecks<C, O>(session: ConformanceSession<C, O>): readonly ConformanceCheck[] {
  const optional: readonly (readonly [ConformanceFault, ConformanceCheck])[] = [
    ['nothing-applied', { name: 'what was not applied can be sent again', run: () => sentAgain(session) }],
    [
      'answer-lost',
      { name: 'a lost answer is unknown until it is reconciled', run: () => answerLost(session) },
    ],
    [
      'reject-first',
      {
        name: 'a rejected operation leaves the others accepted',
        run: () => rejected(session, 'reject-first'),
      },
    ],
    [
      'reply-shuffled',
      { name: 'outcomes are matched by id, not by position', run: () => rejected(session, 'reply-shuffled') },
    ],
    [
      'never-answers',
      { name: 'an aborted request comes back, unknown', run: () => abortedInFlight(session) },
    ],
    ...(['reply-lacks-id', 'reply-repeats-id', 'reply-adds-id'] as const).map(
      (fault) =>
        [
          fault,
          { name: `${fault}: such a reply accepts nothing`, run: () => unattributable(session, fault) },
        ] as const,
    ),
  ];
  return [
    { name: 'an unreachable target has applied nothing', run: () => unreachable(session) },
    { name: 'a request is not sent once the abort signal is up', run: () => abortedBefore(session) },
    ...optional.filter(([fault]) => session.can(fault)).map(([, check]) => check),
  ];
}

function unreachable<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const outcome = await writer.upsert(session.request('upsert', session.members()));
    demand(outcome.kind === 'not-applied', `not-applied, and not ${outcome.kind}`);
    session.demandClean(outcome);
    const problems = await writer.preflight();
    demand(problems.length > 0, 'preflight to find that nothing listens');
    session.demandClean(problems);
  }, session.harness.unreachable);
}

function abortedBefore<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer, control) => {
    control.abort();
    const outcome = await writer.upsert(session.request('upsert', session.members()));
    demand(outcome.kind === 'not-applied', `not-applied, and not ${outcome.kind}`);
    await session.demandHeld([]);
  });
}

function abortedInFlight<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer, control) => {
    await session.arm('never-answers');
    const sending = writer.upsert(session.request('upsert', session.members()));
    setTimeout(() => control.abort(), 100);
    const outcome = await within(sending, ABORT_LIMIT_MS);
    demand(outcome.kind === 'unknown', `unknown, and not ${outcome.kind}`);
  });
}

async function within(sending: Promise<BatchOutcome>, ms: number): Promise<BatchOutcome> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('expected an aborted request to come back')), ms);
  });
  try {
    return await Promise.race([sending, late]);
  } finally {
    clearTimeout(timer);
  }
}

function sentAgain<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const members = session.members();
    const request = session.request('upsert', members);
    await session.arm('nothing-applied');
    const outcome = await writer.upsert(request);
    demand(outcome.kind === 'not-applied', `not-applied, and not ${outcome.kind}`);
    session.demandClean(outcome);
    await session.demandHeld([]);
    session.demandAccepted(await session.deliver(writer, request), request);
    if (session.capabilities.visible === 'on_accept') await session.demandHeld(members);
  });
}

function answerLost<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const members = session.members();
    const request = session.request('upsert', members);
    await session.arm('answer-lost');
    const outcome = await writer.upsert(request);
    demand(outcome.kind === 'unknown', `unknown, and not ${outcome.kind}`);
    const { bodies } = session.harness;
    if (bodies !== undefined) demand((await bodies()).length === 1, 'no second request behind the first');
    const looked = await writer.reconcileBatch(request, null, session.progressOf(request));
    const resolved = await session.toEnd(writer, request, looked);
    if (session.capabilities.recovery === 'manual')
      demand(resolved.kind === 'unknown', `a manual adapter to leave it unknown, and not ${resolved.kind}`);
    else session.demandAccepted(resolved, request);
    if (session.capabilities.visible === 'on_accept') await session.demandHeld(members);
  });
}

function rejected<C, O>(session: ConformanceSession<C, O>, fault: ConformanceFault): Promise<void> {
  return session.withWriter(async (writer) => {
    const members = session.members();
    const request = session.request('upsert', members);
    await session.arm(fault);
    const outcome = await session.deliver(writer, request);
    session.demandClean(outcome);
    if (outcome.kind === 'refused') return session.demandHeld([]); // names no operation: all of it is refused
    const rows = rowsOf(outcome, request);
    demand(rows !== null, `outcomes for each operation, and not ${outcome.kind}`);
    demand(rows?.[0]?.kind === 'rejected', 'the first operation to be rejected');
    demand(rows?.slice(1).every(({ kind }) => kind === 'accepted') === true, 'the others to be accepted');
    if (session.capabilities.visible === 'on_accept') await session.demandHeld(members.slice(1));
  });
}

function unattributable<C, O>(session: ConformanceSession<C, O>, fault: ConformanceFault): Promise<void> {
  return session.withWriter(async (writer) => {
    await session.arm(fault);
    const outcome = await session.deliver(writer, session.request('upsert', session.members()));
    demand(provesNothing(outcome), `no proof of anything, and not ${outcome.kind}`);
    session.demandClean(outcome);
  });
}
