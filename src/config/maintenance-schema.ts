/** `maintenance` of retl.yaml: when the journal is tidied, and how long what runs leave behind is kept. */

import { z } from 'zod';
import type { MaintenanceSettings } from '../domain/settings.ts';
import { DURATION_PATTERN, DURATION_WORDS, parseDuration } from './quantities.ts';
import { quantity } from './quantity-schema.ts';
import { scheduleInput, scheduleSettings } from './schedule-schema.ts';

const DEFAULTS = { keep_receipts: '30d', keep_candidates: '7d', every: '1d' } as const;
const DAY_MS = 86_400_000;
/** A hundred years: for good, as far as anybody asks. */
const LONGEST_DAYS = 36_525;

const kept = quantity(
  DURATION_PATTERN,
  parseDuration,
  [DAY_MS, LONGEST_DAYS * DAY_MS],
  `Nothing is taken away before it is a day old: the duration must be between 1d and ${LONGEST_DAYS}d.`,
);

export const maintenanceInput = z
  .strictObject({
    enabled: z
      .boolean()
      .meta({ description: 'true or false: whether it has a schedule', default: true })
      .optional(),
    schedule: scheduleInput
      .describe(
        'when it runs by itself, as of a mirror: {every: 1d}, which is the default, or {cron, time_zone}',
      )
      .optional(),
    keep_receipts: kept
      .meta({
        description: `how long providers’ answers, and attempts, of closed runs are kept: ${DURATION_WORDS}`,
        default: DEFAULTS.keep_receipts,
      })
      .optional(),
    keep_candidates: kept
      .meta({
        description: `how long the snapshot of a run is kept that nobody goes on with: ${DURATION_WORDS}`,
        default: DEFAULTS.keep_candidates,
      })
      .optional(),
    compact: kept
      .meta({
        description: `how long single effects of the log are kept: ${DURATION_WORDS}; for good where left out`,
      })
      .optional(),
  })
  .describe(
    'what goes, and when: {enabled, schedule, keep_receipts, keep_candidates, compact}; once a day where it is left out',
  );

export function maintenanceSettings(
  input: z.infer<typeof maintenanceInput> | undefined,
): MaintenanceSettings {
  const { enabled = true, schedule = { every: DEFAULTS.every } } = input ?? {};
  return {
    schedule: enabled ? scheduleSettings(schedule) : null,
    keepReceiptsMs: ms(input?.keep_receipts ?? DEFAULTS.keep_receipts),
    keepCandidatesMs: ms(input?.keep_candidates ?? DEFAULTS.keep_candidates),
    compactMs: input?.compact === undefined ? null : ms(input.compact),
  };
}

function ms(text: string): number {
  const value = parseDuration(text);
  if (value === null) throw new Error('a duration was not checked before it was read');
  return value;
}
