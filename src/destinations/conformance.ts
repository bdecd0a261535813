/**
 * Conformance kit for authors of destinations (design.md section 9): named checks that throw where an adapter breaks
 * what the core relies on. Any test runner can run them, one by one and in order:
 *
 *     for (const check of conformanceChecks(harness)) test(check.name, check.run);
 *
 * Checks whose fault a harness cannot provoke are left out, so look at the names that remain.
 */

import { canonicalJson } from '../domain/canonical-json.ts';
import { deliveryChecks } from './conformance-delivery.ts';
import { faultChecks } from './conformance-faults.ts';
import type { ConformanceCheck, ConformanceHarness, Target } from './conformance-harness.ts';
import { jobChecks } from './conformance-jobs.ts';
import { listingChecks } from './conformance-listing.ts';
import { replaceChecks } from './conformance-replace.ts';
import { ConformanceSession, demand } from './conformance-session.ts';
import { UNBOUNDED_MS } from './port.ts';

export type {
  ConformanceCheck,
  ConformanceFault,
  ConformanceHarness,
  Target,
} from './conformance-harness.ts';

/** All checks that apply to this adapter and harness. Each leaves the target as it likes and begins with a reset. */
export function conformanceChecks<Connection, Options>(
  harness: ConformanceHarness<Connection, Options>,
): readonly ConformanceCheck[] {
  const bound = new ConformanceSession(harness);
  return [
    ...staticChecks(harness),
    ...deliveryChecks(bound),
    ...faultChecks(bound),
    ...jobChecks(bound),
    ...replaceChecks(bound),
    ...listingChecks(bound),
  ];
}

function staticChecks<C, O>(harness: ConformanceHarness<C, O>): readonly ConformanceCheck[] {
  return [
    {
      name: 'the target key is the same for the same target, and for no other, and holds no secret',
      run: async () => checkTargetKeys(harness),
    },
    {
      name: 'the capabilities are bounds that a request can keep',
      run: async () => checkCapabilities(harness),
    },
    {
      name: 'a removal depends on identity and configuration only',
      run: async () => {
        const [first, second] = [harness.member(1, 1), harness.member(1, 2)];
        demand(
          canonicalJson(first.upsert) !== canonicalJson(second.upsert),
          'variants to differ in their payload',
        );
        demand(
          canonicalJson(first.identity) === canonicalJson(second.identity),
          'variants to keep the identity',
        );
        demand(canonicalJson(first.remove) === canonicalJson(second.remove), 'variants to keep the removal');
      },
    },
  ];
}

function checkTargetKeys<C, O>(harness: ConformanceHarness<C, O>): void {
  const keyOf = (target: Target<C, O>) => harness.adapter.targetKey(target.connection, target.options);
  const key = keyOf(harness);
  demand(key === keyOf(harness), 'the target key to be the same when asked twice');
  for (const target of harness.sameTargets) demand(keyOf(target) === key, 'one key for one target');
  for (const target of harness.otherTargets) demand(keyOf(target) !== key, 'another key for another target');
  for (const secret of harness.secrets) demand(!key.includes(secret), 'a target key without secrets');
}

function checkCapabilities<C, O>({ adapter, connection, options }: ConformanceHarness<C, O>): void {
  const can = adapter.capabilities(connection, options);
  for (const bound of [can.maxRows, can.maxBytes, can.maxInFlight])
    demand(Number.isSafeInteger(bound) && bound >= 1, 'bounds of at least 1');
  demand(
    can.longestRequestMs >= 1 && can.longestRequestMs <= UNBOUNDED_MS,
    'the longest time of a request, up to a day',
  );
  demand(can.strategies.length > 0, 'a strategy');
  const diffs = can.strategies.includes('snapshot-diff');
  demand(!diffs || can.explicitRemoval, 'explicit removal, without which there is no snapshot-diff');
  demand(!diffs || can.visible === 'on_accept', 'snapshot-diff uploads to become real before the finish');
}
