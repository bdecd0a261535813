/** Conformance checks of writers that list what their target holds (listing.ts): all of it, in words that can be compared. */

import { canonicalJson } from '../domain/canonical-json.ts';
import type { Member } from '../domain/member.ts';
import type { ConformanceCheck } from './conformance-harness.ts';
import { type ConformanceSession, demand } from './conformance-session.ts';
import { LISTING_PAGE, type Listed, type ListedMember, type Listing } from './listing.ts';
import type { Writer } from './port.ts';

type Session<C, O> = ConformanceSession<C, O>;

export function listingChecks<C, O>(session: Session<C, O>): readonly ConformanceCheck[] {
  if (session.capabilities.lists !== true) return [];
  return [
    {
      name: 'listing: every member that is held is told once, and nobody else',
      run: () => tellsAll(session),
    },
    {
      name: 'listing: what is told of a member is what the target would tell of it, and differs with the payload',
      run: () => tellsPayloads(session),
    },
    { name: 'listing: an empty target lists nobody', run: () => tellsNobody(session) },
    {
      name: 'listing: changes nothing at the target, also where it is given up half-way',
      run: () => changesNothing(session),
    },
    { name: 'listing: ends once it is told to stop, and does not pass for whole', run: () => stops(session) },
  ];
}

async function tellsAll<C, O>(session: Session<C, O>): Promise<void> {
  const members = session.members();
  await held(session, members, async (writer) => {
    const [listed, expected] = [await all(writer), await told(writer, members)];
    const names = (list: readonly ListedMember[]) => list.map(({ identity }) => identity).sort();
    demand(new Set(names(expected)).size === members.length, 'different members to be told apart');
    demand(same(names(listed), names(expected)), `exactly the ${members.length} members that are held`);
  });
}

async function tellsPayloads<C, O>(session: Session<C, O>): Promise<void> {
  const members = session.members();
  await held(session, members, async (writer) => {
    const listed = new Map((await all(writer)).map(({ identity, payload }) => [identity, payload]));
    const [now, other] = [
      await told(writer, members),
      await told(writer, session.members(members.length, 2)),
    ];
    for (const [index, { identity, payload }] of now.entries()) {
      if (payload === null) continue;
      demand(listed.get(identity) === payload, 'the payload that was accepted to be told as it is');
      const changed = other[index];
      demand(changed?.identity === identity, 'an identity that does not depend on the payload');
      demand(changed?.payload !== payload, 'another payload to be told from it');
    }
  });
}

async function tellsNobody<C, O>(session: Session<C, O>): Promise<void> {
  await held(session, [], async (writer) => {
    demand((await all(writer)).length === 0, 'nobody in an empty target');
  });
}

async function changesNothing<C, O>(session: Session<C, O>): Promise<void> {
  const members = session.members();
  await held(session, members, async (writer) => {
    await all(writer);
    for await (const page of listingOf(writer).pages()) {
      demand(page.kind === 'listed', 'a first page');
      break;
    }
    await session.demandHeld(members);
    await all(writer);
  });
}

async function stops<C, O>(session: Session<C, O>): Promise<void> {
  const members = session.members();
  await held(session, members, async (writer, control) => {
    control.abort();
    let last: Listed | null = null;
    for await (const page of listingOf(writer).pages()) last = page;
    demand(last !== null && last.kind === 'failed', 'a listing that was stopped to say so');
    session.demandClean(last);
  });
}

/** A writer that only looks, on a target that holds these members. */
async function held<C, O>(
  session: Session<C, O>,
  members: readonly Member[],
  body: (writer: Writer, control: AbortController) => Promise<void>,
): Promise<void> {
  await session.hold(members);
  const control = new AbortController();
  await session.looking(control.signal, (writer) => body(writer, control));
}

function listingOf(writer: Writer): Listing {
  if (writer.list === undefined) throw new Error('expected a writer that lists, as it is declared');
  return writer.list();
}

async function all(writer: Writer): Promise<readonly ListedMember[]> {
  const members: ListedMember[] = [];
  for await (const page of listingOf(writer).pages()) members.push(...membersOf(page));
  return members;
}

async function told(writer: Writer, members: readonly Member[]): Promise<readonly ListedMember[]> {
  const sent = members.map(({ identity, upsert }) => ({
    identity: canonicalJson(identity),
    payload: canonicalJson(upsert),
  }));
  const listed = membersOf(await listingOf(writer).asListed(sent));
  demand(listed.length === members.length, 'an answer for each member that was asked about');
  return listed;
}

function membersOf(page: Listed): readonly ListedMember[] {
  if (page.kind !== 'listed')
    throw new Error(`expected a page of members, and not ${page.kind}: ${page.code}`);
  demand(page.members.length <= LISTING_PAGE, `pages of ${LISTING_PAGE} members at most`);
  return page.members;
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}
