/** `defaults` of retl.yaml, put under a mirror's own settings key by key. What either holds has been checked by itself. */

import type { MirrorInputFile } from './mirror-schema.ts';
import type { DefaultsInput } from './project-schema.ts';

export function withDefaults(input: MirrorInputFile, defaults: DefaultsInput): MirrorInputFile {
  const { schedule, ...own } = input;
  const { schedule: scheduled, batch, safety, ...whole } = defaults;
  return {
    ...whole,
    ...own,
    ...(batch === undefined ? {} : { batch: { ...batch, ...own.batch } }),
    ...(safety === undefined ? {} : { safety: { ...safety, ...own.safety } }),
    ...(schedule === undefined ? {} : { schedule: { ...forTimesOf(schedule, scheduled), ...schedule } }),
  };
}

type Schedule = NonNullable<MirrorInputFile['schedule']>;

/** `every` counts in UTC and takes no time zone, not even the project's. */
function forTimesOf(
  { every }: Schedule,
  defaults: NonNullable<DefaultsInput['schedule']> = {},
): NonNullable<DefaultsInput['schedule']> {
  const { time_zone: _, ...rest } = defaults;
  return every === undefined ? defaults : rest;
}

/** What the project gives defaults for, e.g. `batch.rows`, in the order written. */
export function defaultKeys(defaults: DefaultsInput): readonly string[] {
  return Object.entries(defaults).flatMap(([section, value]) =>
    typeof value === 'object' && !Array.isArray(value)
      ? Object.keys(value).map((key) => `${section}.${key}`)
      : [section],
  );
}
