/** Strategy, baseline and what an adapter declares must fit, before anything is opened (design.md section 4, "Strategies"). */

import { expect, test } from 'vitest';
import { z } from 'zod';
import { bindDestination } from '../../src/activities/binding.ts';
import type { Capabilities, DestinationAdapter } from '../../src/destinations/port.ts';
import { ARRAY_FRAME } from '../../src/domain/request.ts';
import type { MirrorSettings } from '../../src/domain/settings.ts';
import { modelSettings } from '../model/adapters.ts';

type Baseline = MirrorSettings['baseline']['kind'];
type Strategy = MirrorSettings['strategy'];

function adapter(declared: Partial<Capabilities>): DestinationAdapter {
  return {
    type: 'model',
    connectionSchema: z.object({}),
    optionsSchema: z.object({}),
    capabilities: () => ({
      strategies: ['snapshot-diff', 'native-replace'],
      explicitRemoval: true,
      batchDelivery: 'accepted',
      recovery: 'manual',
      visible: 'on_accept',
      maxRows: 10,
      maxBytes: 1_000,
      maxInFlight: 1,
      longestRequestMs: 1_000,
      identityFolding: [],
      ...declared,
    }),
    targetKey: () => 'target',
    frame: () => ARRAY_FRAME,
    checkFields: () => [],
    open: () => Promise.reject(new Error('nothing is opened')),
  };
}

function bind(strategy: Strategy, kind: Baseline, declared: Partial<Capabilities>) {
  const settings: MirrorSettings = {
    ...modelSettings('bound', { rows: 1_000, inFlight: 8, kind: 'manual', asynchronous: false }),
    strategy,
    baseline: { kind, attested: null },
  };
  const configuration = {
    mirror: async () => settings,
    text: () => '',
    parse: () => settings,
    resolve: (options: MirrorSettings['destination']['options']) => options,
    projection: () => Promise.reject(new Error('none')),
  };
  return bindDestination({ destinations: [adapter(declared)], configuration }, settings);
}

const CASES: readonly (readonly [string, Strategy, Baseline, Partial<Capabilities>])[] = [
  ['no differences where it only replaces', 'snapshot-diff', 'new-empty', { strategies: ['native-replace'] }],
  ['no replacement where it only diffs', 'native-replace', 'replace', { strategies: ['snapshot-diff'] }],
  ['no differences without removal', 'snapshot-diff', 'new-empty', { explicitRemoval: false }],
  ['no differences of what shows at the finish', 'snapshot-diff', 'new-empty', { visible: 'at_finish' }],
  ['no differences on the baseline of a replacement', 'snapshot-diff', 'replace', {}],
  ['no replacement on the baseline of differences', 'native-replace', 'new-empty', {}],
];
test.each(CASES)(
  'a mirror is bound only to an adapter that can keep what it asks: %s',
  (_, strategy, kind, declared) => {
    expect(() => bind(strategy, kind, declared)).toThrow(
      expect.objectContaining({ code: 'destination.baseline-unsupported' }),
    );
  },
);

test('what fits is bound, within the lower of both limits', () => {
  const limits = { rows: 10, bytes: 1_000, inFlight: 1 };
  expect(bind('snapshot-diff', 'new-empty', {}).limits).toEqual(limits);
  const replaces = { visible: 'at_finish', explicitRemoval: false } as const;
  expect(bind('native-replace', 'replace', replaces).limits).toEqual(limits);
});
