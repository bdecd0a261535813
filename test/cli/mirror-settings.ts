/** A mirror's settings for tests that need no file. */

import type { MemberRule, MirrorSettings } from '../../src/domain/settings.ts';

export function mirrorNamed(
  mirror: string,
  members: readonly MemberRule[],
  destination: Partial<MirrorSettings['destination']> = {},
): MirrorSettings {
  return {
    mirror,
    strategy: 'snapshot-diff',
    source: { type: 'postgres', connection: 'shop', connectionOptions: {}, query: 'select 1', key: ['id'] },
    mapping: { kind: 'rules', members },
    destination: { type: 'http', connection: 'crm', connectionOptions: {}, options: {}, ...destination },
    baseline: { kind: 'new-empty', attested: null },
    batch: { rows: 1, bytes: 1, inFlight: 1, pollDeadlineMs: 1 },
    safety: { maxRemovalShare: null, maxRemovals: null, emptySnapshot: 'hold', approvalDeadlineMs: 1 },
    onRejection: { kind: 'stop' },
    refreshAfterMs: null,
    resumeMaxAgeMs: 1,
  };
}
