/** Conformance checks of asynchronous adapters: what is staged is no acceptance, and a poll is no proof by itself (rule 5). */

import type { ConformanceCheck, ConformanceFault } from './conformance-harness.ts';
import { type ConformanceSession, demand, provesNothing } from './conformance-session.ts';
import type { BatchOutcome, BatchRequest, Writer } from './port.ts';

export function jobChecks<C, O>(session: ConformanceSession<C, O>): readonly ConformanceCheck[] {
  if (session.capabilities.batchDelivery !== 'asynchronous') return [];
  const optional: readonly (readonly [ConformanceFault, ConformanceCheck])[] = [
    ['job-runs-on', { name: 'a running job stays staged, under the same ids', run: () => runsOn(session) }],
    [
      'job-runs-on',
      {
        name: 'jobs are settled by their own results, in whatever order they end',
        run: () => outOfOrder(session),
      },
    ],
    [
      'poll-fails',
      {
        name: 'a poll without an answer leaves the job as it was',
        run: () => askedAgain(session, 'poll-fails'),
      },
    ],
    [
      'job-unknown',
      { name: 'a job that is not known proves nothing', run: () => askedAgain(session, 'job-unknown') },
    ],
    [
      'job-tells-nothing',
      { name: 'a job that is done and tells of nobody accepts nothing', run: () => tellsNothing(session) },
    ],
  ];
  return [
    { name: 'a batch is staged with a job id, once each', run: () => stagedOnce(session) },
    {
      name: 'a newer attempt asks about a job without rejoining the session',
      run: () => newlyAsked(session),
    },
    ...optional.filter(([fault]) => session.can(fault)).map(([, check]) => check),
  ];
}

type Staged = Extract<BatchOutcome, { kind: 'staged' }>;

async function stage<C, O>(
  session: ConformanceSession<C, O>,
  writer: Writer,
  request: BatchRequest,
): Promise<Staged> {
  const outcome = await writer.upsert(request);
  session.demandClean(outcome);
  if (outcome.kind !== 'staged') throw new Error(`expected staged, and not ${outcome.kind}`);
  const { jobIds } = outcome;
  demand(jobIds.length > 0 && jobIds.every((id) => id !== ''), 'a job id, and no empty one');
  demand(new Set(jobIds).size === jobIds.length, 'each job id once');
  return outcome;
}

async function demandJobs<C, O>({ harness }: ConformanceSession<C, O>, count: number): Promise<void> {
  if (harness.jobs === undefined) return;
  const begun = await harness.jobs();
  demand(begun === count, `${count} jobs, and not ${begun}`);
}

function stagedOnce<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const request = session.request('upsert', session.members());
    const staged = await stage(session, writer, request);
    session.demandAccepted(await session.toEnd(writer, request, staged), request);
    await demandJobs(session, 1);
  });
}

function newlyAsked<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const request = session.request('upsert', session.members());
    const staged = await stage(session, writer, request);
    await session.withAttempt(null, async (newer) =>
      session.demandAccepted(await session.toEnd(newer, request, staged), request),
    );
    await demandJobs(session, 1);
  });
}

function runsOn<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const request = session.request('upsert', session.members());
    await session.arm('job-runs-on');
    const staged = await stage(session, writer, request);
    const polled = await session.poll(writer, request, staged);
    demand(polled.kind === 'staged', `staged, and not ${polled.kind}`);
    if (polled.kind === 'staged')
      demand(polled.jobIds.join('\n') === staged.jobIds.join('\n'), 'the same job ids');
    session.demandAccepted(await session.toEnd(writer, request, staged), request);
    await demandJobs(session, 1);
  });
}

function outOfOrder<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    const all = session.members(2 * session.rows);
    const first = session.request('upsert', all.slice(0, session.rows));
    const second = session.request('upsert', all.slice(session.rows));
    await session.arm('job-runs-on');
    const [slow, quick] = [await stage(session, writer, first), await stage(session, writer, second)];
    session.demandAccepted(await session.toEnd(writer, second, quick), second);
    const foreign = await session.poll(writer, first, quick);
    demand(provesNothing(foreign) || foreign.kind === 'staged', 'results of other ids to prove nothing');
    session.demandAccepted(await session.toEnd(writer, first, slow), first);
    await demandJobs(session, 2);
    if (session.capabilities.visible === 'on_accept') await session.demandHeld(all);
  });
}

function askedAgain<C, O>(session: ConformanceSession<C, O>, fault: ConformanceFault): Promise<void> {
  return session.withWriter(async (writer) => {
    const request = session.request('upsert', session.members());
    const staged = await stage(session, writer, request);
    await session.arm(fault);
    const polled = await session.poll(writer, request, staged);
    session.demandClean(polled);
    demand(provesNothing(polled) || polled.kind === 'staged', `nothing to be proven, and not ${polled.kind}`);
    session.demandAccepted(await session.toEnd(writer, request, staged), request);
    await demandJobs(session, 1);
  });
}

function tellsNothing<C, O>(session: ConformanceSession<C, O>): Promise<void> {
  return session.withWriter(async (writer) => {
    await session.arm('job-tells-nothing');
    const request = session.request('upsert', session.members());
    const outcome = await session.toEnd(writer, request, await stage(session, writer, request));
    demand(provesNothing(outcome), `no proof of anything, and not ${outcome.kind}`);
    await demandJobs(session, 1);
  });
}
