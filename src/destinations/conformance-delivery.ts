/** Conformance checks of a target that behaves. */

import type { ConformanceCheck } from './conformance-harness.ts';
import { type ConformanceSession, demand } from './conformance-session.ts';

export function deliveryChecks<C, O>(session: ConformanceSession<C, O>): readonly ConformanceCheck[] {
  const { harness, capabilities } = session;
  const checks: ConformanceCheck[] = [
    { name: 'upserted members are held, exactly as sent', run: () => upsertsAreHeld(session) },
    { name: 'each operation of a request is accepted whatever its order', run: () => orderIsFree(session) },
    {
      name: 'a session can be opened, rejoined and finished with nothing to do',
      run: () => emptyRun(session),
    },
    { name: 'a writer can be closed more than once', run: () => closesTwice(session) },
  ];
  // Where a set is replaced as a whole, a member is uploaded once a run.
  if (capabilities.strategies.includes('snapshot-diff'))
    checks.push({
      name: 'an upsert of a held member changes it and adds none',
      run: () => changesInPlace(session),
    });
  if (capabilities.explicitRemoval)
    checks.push({ name: 'a removal removes its own members and no other', run: () => removes(session) });
  if (capabilities.recovery === 'idempotent')
    checks.push({
      name: 'idempotent: the same request twice equals once',
      run: () => twiceEqualsOnce(session),
    });
  if (harness.bodies !== undefined)
    checks.push({
      name: 'the target receives exactly the bytes of the request, once',
      run: () => exactBytes(session),
    });
  return checks;
}

function upsertsAreHeld<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    await beginIfNeeded(session, writer);
    const members = session.members(2 * session.rows);
    await session.fill(writer, members);
    await finishIfNeeded(session, writer, members.length);
    await session.demandHeld(members);
  });
}

function changesInPlace<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    await session.fill(writer, session.members(session.rows, 1));
    await session.fill(writer, session.members(session.rows, 2));
    await finishIfNeeded(session, writer, session.rows);
    await session.demandHeld(session.members(session.rows, 2));
  });
}

function orderIsFree<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    await beginIfNeeded(session, writer);
    const members = session.members();
    await session.fill(writer, [...members].reverse());
    await finishIfNeeded(session, writer, members.length);
    await session.demandHeld(members);
  });
}

function removes<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const all = session.members(2 * session.rows, 1);
    await session.fill(writer, all);
    // The removal of another variant: only the identity may count.
    const request = session.request('remove', session.members(session.rows, 2));
    session.demandAccepted(await session.deliver(writer, request), request);
    await session.demandHeld(all.slice(session.rows));
  });
}

function emptyRun<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const opened = await writer.init();
    demand(opened.kind === 'accepted', `init to be accepted, and not ${opened.kind}`);
    session.demandClean(opened);
    if (opened.kind === 'accepted') {
      const joined = await writer.attach(opened.receipt);
      demand(joined.kind === 'accepted', `attach to be accepted, and not ${joined.kind}`);
    }
    const finished = await writer.finish(session.finish(0));
    demand(finished.kind === 'accepted' || finished.kind === 'pending', 'an empty finish to be taken');
    session.demandClean(finished);
    await session.demandHeld([]);
  });
}

function closesTwice<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    await session.fill(writer, session.members(1));
    await writer.close();
    await writer.close();
  });
}

function twiceEqualsOnce<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    await beginIfNeeded(session, writer);
    const members = session.members();
    const request = session.request('upsert', members);
    session.demandAccepted(await session.deliver(writer, request), request);
    const again = await writer.reconcileBatch(request, null, session.progressOf(request));
    session.demandAccepted(await session.toEnd(writer, request, again), request);
    await finishIfNeeded(session, writer, members.length);
    await session.demandHeld(members);
  });
}

function exactBytes<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const request = session.request('upsert', session.members());
    session.demandAccepted(await session.deliver(writer, request), request);
    const bodies = (await session.harness.bodies?.()) ?? [];
    demand(bodies.length === 1, `one request, and not ${bodies.length}`);
    demand(bodies[0] === request.body, 'the body to arrive as it was given');
  });
}

/** What only a finish makes visible is uploaded within a session. */
async function beginIfNeeded<C, O>(
  session: ConformanceSession<C, O>,
  writer: Parameters<Parameters<typeof session.withWriter>[0]>[0],
): Promise<void> {
  if (session.capabilities.visible !== 'at_finish') return;
  const outcome = await writer.init();
  demand(outcome.kind === 'accepted', `init to be accepted, and not ${outcome.kind}`);
}

/** Targets that show nothing before the finish are looked at after it. */
async function finishIfNeeded<C, O>(
  session: ConformanceSession<C, O>,
  writer: Parameters<Parameters<typeof session.withWriter>[0]>[0],
  members: number,
): Promise<void> {
  if (session.capabilities.visible !== 'at_finish') return;
  const outcome = await writer.finish(session.finish(members));
  demand(outcome.kind === 'accepted', `the finish to be accepted, and not ${outcome.kind}`);
}
