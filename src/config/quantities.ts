/**
 * Sizes, durations and shares as people write them. Each parser is exact (no rounding that would change a limit) and
 * returns `null` for anything else; the words for errors stand beside it.
 */

export const SIZE_PATTERN = /^(\d{1,15})\s*(B|kB|KB|MB|GB|KiB|MiB|GiB)$/;
export const SIZE_WORDS = 'a number of bytes, or a size such as 512KiB or 1MB';

const SIZE_UNITS: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1000,
  KB: 1000,
  MB: 1000 ** 2,
  GB: 1000 ** 3,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

/** Bytes. A bare number is bytes; MB is a million bytes, MiB is 1024². */
export function parseSize(text: string | number): number | null {
  return typeof text === 'number' ? whole(text) : scaled(SIZE_PATTERN.exec(text), SIZE_UNITS);
}

export const DURATION_PATTERN = /^(\d{1,12})\s*(ms|s|m|h|d)$/;
export const DURATION_WORDS = 'a duration such as 90s, 15m, 24h or 7d';

const DURATION_UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Milliseconds. A bare number is refused: nobody can see its unit. */
export function parseDuration(text: string): number | null {
  return scaled(DURATION_PATTERN.exec(text), DURATION_UNITS);
}

export const SHARE_PATTERN = /^(\d{1,3})(\.\d{1,6})?\s*%$/;
export const SHARE_WORDS = 'a share such as 20% or 0.5%';

/** A share from 0 to 1, from a percentage of 0% to 100%. */
export function parseShare(text: string): number | null {
  const match = SHARE_PATTERN.exec(text);
  if (match === null) return null;
  const percent = Number(`${match[1]}${match[2] ?? ''}`);
  // Through a decimal shift, so that 20% is the double 0.2 and not a neighbour of it.
  return percent > 100 ? null : Number(`${percent}e-2`);
}

function scaled(match: RegExpExecArray | null, units: Readonly<Record<string, number>>): number | null {
  const unit = units[match?.[2] ?? ''];
  return match === null || unit === undefined ? null : whole(Number(match[1]) * unit);
}

function whole(value: number): number | null {
  return Number.isSafeInteger(value) && value >= 0 ? value : null;
}
